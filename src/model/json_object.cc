#include "model/json_object.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <cmath>

namespace fathom::model {
namespace {

namespace json = boost::json;

std::string shown(const json::value& v) {
  constexpr size_t kShownMax = 60;
  std::string text = json::serialize(v);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return text;
}

std::string range(int64_t min, int64_t max) {
  return std::to_string(min) + " to " + std::to_string(max);
}

bool in_range(const json::value& v, int64_t min, int64_t max) {
  const int64_t* i = v.if_int64();
  return i != nullptr && *i >= min && *i <= max;
}

}  // namespace

JsonObject::JsonObject(const json::object& object, std::string_view where, std::string_view path)
    : object_(object), where_(where), path_(path) {}

std::string JsonObject::place(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void JsonObject::fail(std::string_view key, const std::string& what) {
  if (!status_.ok()) return;
  status_ = Status(StatusCode::kFailedPrecondition, where_ + ": " + place(key) + ": " + what);
}

const json::value* JsonObject::find(std::string_view key, Presence presence) {
  known_.emplace(key);
  if (!status_.ok()) return nullptr;
  const json::value* v = object_.if_contains(json::string_view(key.data(), key.size()));
  if (v != nullptr && !v->is_null()) return v;
  if (presence == Presence::kRequired) fail(key, "missing");
  return nullptr;
}

template <class Int>
void JsonObject::integer_as(std::string_view key, int64_t min, int64_t max, Int* out,
                            Presence presence) {
  const json::value* v = find(key, presence);
  if (v == nullptr) return;
  if (!in_range(*v, min, max)) {
    return fail(key, "expected an integer from " + range(min, max) + ", found " + shown(*v));
  }
  *out = static_cast<Int>(v->get_int64());
}

void JsonObject::integer(std::string_view key, int64_t min, int64_t max, int32_t* out,
                         Presence presence) {
  integer_as(key, min, max, out, presence);
}

void JsonObject::integer(std::string_view key, int64_t min, int64_t max, int64_t* out,
                         Presence presence) {
  integer_as(key, min, max, out, presence);
}

void JsonObject::number(std::string_view key, double min, double max, double* out,
                        Presence presence) {
  const json::value* v = find(key, presence);
  if (v == nullptr) return;
  double d = NAN;
  if (const int64_t* i = v->if_int64()) d = static_cast<double>(*i);
  if (const double* x = v->if_double()) d = *x;
  if (!(d >= min && d <= max)) {
    return fail(
        key, "expected a number from " + shown(min) + " to " + shown(max) + ", found " + shown(*v));
  }
  *out = d;
}

void JsonObject::number(std::string_view key, double min, double max, float* out,
                        Presence presence) {
  double d = *out;
  number(key, min, max, &d, presence);
  *out = static_cast<float>(d);
}

void JsonObject::boolean(std::string_view key, bool* out, Presence presence) {
  const json::value* v = find(key, presence);
  if (v == nullptr) return;
  const bool* b = v->if_bool();
  if (b == nullptr) return fail(key, "expected true or false, found " + shown(*v));
  *out = *b;
}

template <class Int>
void JsonObject::integers_as(std::string_view key, int64_t min, int64_t max, size_t size_max,
                             std::vector<Int>* out, Presence presence) {
  const json::value* v = find(key, presence);
  if (v == nullptr) return;
  const json::array* list = v->if_array();
  if (list == nullptr || list->size() > size_max) {
    return fail(key, "expected a list of at most " + std::to_string(size_max) +
                         " integers, found " + shown(*v));
  }
  out->clear();
  for (const json::value& entry : *list) {
    if (!in_range(entry, min, max)) {
      return fail(key, "expected integers from " + range(min, max) + ", found " + shown(entry));
    }
    out->push_back(static_cast<Int>(entry.get_int64()));
  }
}

void JsonObject::integers(std::string_view key, int64_t min, int64_t max, size_t size_max,
                          std::vector<int32_t>* out, Presence presence) {
  integers_as(key, min, max, size_max, out, presence);
}

void JsonObject::integers(std::string_view key, int64_t min, int64_t max, size_t size_max,
                          std::vector<int64_t>* out, Presence presence) {
  integers_as(key, min, max, size_max, out, presence);
}

void JsonObject::must_be(std::string_view key, const json::value& expected, Presence presence) {
  const json::value* v = find(key, presence);
  if (v == nullptr || *v == expected) return;
  fail(key, "only " + shown(expected) + " is supported, found " + shown(*v));
}

void JsonObject::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) known_.emplace(key);
}

const json::object* JsonObject::object(std::string_view key, Presence presence) {
  const json::value* v = find(key, presence);
  if (v == nullptr) return nullptr;
  if (!v->is_object()) {
    fail(key, "expected an object, found " + shown(*v));
    return nullptr;
  }
  return &v->get_object();
}

Status JsonObject::finish() {
  for (const auto& member : object_) {
    const std::string key(member.key().data(), member.key().size());
    if (!known_.contains(key)) {
      fail(key.substr(0, 80),
           "unknown key; it may change the architecture, and this version does not implement it");
    }
  }
  return std::move(status_);
}

}  // namespace fathom::model
