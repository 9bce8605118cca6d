#include "codec/json_value.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace fathom::codec {

namespace {

constexpr size_t kLinearSearchMax = 16;

}  // namespace

JsonObject::JsonObject(std::vector<Member> members) : members_(std::move(members)) {
  if (members_.size() <= kLinearSearchMax) {
    for (size_t i = 1; i < members_.size(); ++i) {
      size_t earlier = 0;
      while (members_[earlier].first != members_[i].first) ++earlier;
      if (earlier == i) continue;
      members_[earlier].second = std::move(members_[i].second);
      members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i--));
    }
    return;
  }
  // The keys stay where they are until all repeats are known, so views of them are safe.
  std::unordered_map<std::string_view, size_t> first;
  first.reserve(members_.size());
  std::vector<size_t> repeats;
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto [place, is_new] = first.try_emplace(members_[i].first, i);
    if (is_new) continue;
    members_[place->second].second = std::move(members_[i].second);
    repeats.push_back(i);
  }
  if (repeats.empty()) return;
  auto repeat = repeats.begin();
  size_t kept = *repeat;
  for (size_t i = kept; i < members_.size(); ++i) {
    if (repeat != repeats.end() && *repeat == i) {
      ++repeat;
    } else {
      members_[kept++] = std::move(members_[i]);
    }
  }
  members_.resize(kept);
}

const JsonValue* JsonObject::find(std::string_view key) const {
  for (const Member& member : members_) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

JsonValue* JsonObject::find(std::string_view key) {
  return const_cast<JsonValue*>(std::as_const(*this).find(key));
}

void JsonObject::set(std::string_view key, JsonValue value) {
  if (JsonValue* old = find(key)) {
    *old = std::move(value);
  } else {
    members_.emplace_back(std::string(key), std::move(value));
  }
}

void JsonObject::append(std::string key, JsonValue value) {
  members_.emplace_back(std::move(key), std::move(value));
}

void JsonObject::erase(std::string_view key) {
  std::erase_if(members_, [key](const Member& member) { return member.first == key; });
}

bool JsonObject::operator==(const JsonObject& other) const { return members_ == other.members_; }

JsonValue::JsonValue(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    value_ = static_cast<int64_t>(value);
  } else {
    value_ = value;
  }
}

const JsonValue* JsonValue::find(std::string_view key) const {
  const JsonObject* object = if_object();
  return object == nullptr ? nullptr : object->find(key);
}

}  // namespace fathom::codec
