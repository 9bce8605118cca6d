#include "grammar/json_tree.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <unordered_set>

#include "grammar/limits.h"

namespace fathom::grammar {
namespace {

namespace bj = boost::json;

// Builds the tree from the events of Boost's parser.
struct Builder {
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = static_cast<size_t>(-1);
  static constexpr size_t max_string_size = static_cast<size_t>(-1);

  std::vector<Json> stack;
  std::vector<std::string> keys;  // of the objects on the stack, the one being read
  std::vector<std::unordered_set<std::string>> seen;
  std::string part;
  std::string repeated;

  void add(Json value) {
    Json& top = stack.back();
    if (top.is_object()) {
      top.members.emplace_back(std::move(keys.back()), std::move(value));
    } else {
      top.items.push_back(std::move(value));
    }
  }
  bool end_container(bj::error_code&) {
    Json done = std::move(stack.back());
    stack.pop_back();
    if (done.is_object()) {
      keys.pop_back();
      seen.pop_back();
    }
    add(std::move(done));
    return true;
  }

  bool on_document_begin(bj::error_code&) {
    stack.push_back(Json::array());
    return true;
  }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code&) {
    stack.push_back(Json::object());
    keys.emplace_back();
    seen.emplace_back();
    return true;
  }
  bool on_object_end(size_t, bj::error_code& ec) { return end_container(ec); }
  bool on_array_begin(bj::error_code&) {
    stack.push_back(Json::array());
    return true;
  }
  bool on_array_end(size_t, bj::error_code& ec) { return end_container(ec); }
  bool on_key_part(bj::string_view s, size_t, bj::error_code&) {
    part.append(s.data(), s.size());
    return true;
  }
  bool on_key(bj::string_view s, size_t, bj::error_code& ec) {
    part.append(s.data(), s.size());
    if (!seen.back().insert(part).second) {
      repeated = part;
      ec = bj::error::syntax;
      return false;
    }
    keys.back() = std::exchange(part, {});
    return true;
  }
  bool on_string_part(bj::string_view s, size_t, bj::error_code&) {
    part.append(s.data(), s.size());
    return true;
  }
  bool on_string(bj::string_view s, size_t, bj::error_code&) {
    part.append(s.data(), s.size());
    add(Json::of(std::exchange(part, {})));
    return true;
  }
  bool on_number_part(bj::string_view s, bj::error_code&) {
    part.append(s.data(), s.size());
    return true;
  }
  bool on_number(bj::string_view s, bj::error_code& ec) {
    part.append(s.data(), s.size());
    Json value{
        .kind = Json::Kind::kNumber, .text = std::exchange(part, {}), .items = {}, .members = {}};
    if (!std::isfinite(value.number())) {
      ec = bj::error::not_number;
      return false;
    }
    add(std::move(value));
    return true;
  }
  bool on_int64(int64_t, bj::string_view s, bj::error_code& ec) { return on_number(s, ec); }
  bool on_uint64(uint64_t, bj::string_view s, bj::error_code& ec) { return on_number(s, ec); }
  bool on_double(double, bj::string_view s, bj::error_code& ec) { return on_number(s, ec); }
  bool on_bool(bool value, bj::error_code&) {
    add(Json::of(value));
    return true;
  }
  bool on_null(bj::error_code&) {
    add(Json{});
    return true;
  }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }
};

void write(const Json& value, std::string* out) {
  switch (value.kind) {
    case Json::Kind::kNull:
      *out += "null";
      return;
    case Json::Kind::kBool:
      *out += value.boolean ? "true" : "false";
      return;
    case Json::Kind::kNumber:
      *out += value.text;
      return;
    case Json::Kind::kString:
      *out += quote_json(value.text);
      return;
    case Json::Kind::kArray:
      *out += '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) *out += ',';
        write(value.items[i], out);
      }
      *out += ']';
      return;
    case Json::Kind::kObject:
      *out += '{';
      for (size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) *out += ',';
        *out += quote_json(value.members[i].first) + ':';
        write(value.members[i].second, out);
      }
      *out += '}';
      return;
  }
}

}  // namespace

Json Json::of(bool value) {
  Json json;
  json.kind = Kind::kBool;
  json.boolean = value;
  return json;
}

Json Json::of(std::string value) {
  Json json;
  json.kind = Kind::kString;
  json.text = std::move(value);
  return json;
}

Json Json::of_number(int64_t value) {
  Json json;
  json.kind = Kind::kNumber;
  json.text = std::to_string(value);
  return json;
}

const Json* Json::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

void Json::set(std::string key, Json value) {
  for (Member& member : members) {
    if (member.first != key) continue;
    member.second = std::move(value);
    return;
  }
  members.emplace_back(std::move(key), std::move(value));
}

void Json::erase(std::string_view key) {
  std::erase_if(members, [key](const Member& member) { return member.first == key; });
}

double Json::number() const { return std::strtod(text.c_str(), nullptr); }

std::optional<int64_t> Json::integer() const {
  if (kind != Kind::kNumber) return std::nullopt;
  int64_t exact = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, exact);
  if (error == std::errc() && rest == end) return exact;
  const double value = number();
  if (value != std::floor(value) || std::fabs(value) > 9e15) return std::nullopt;
  return static_cast<int64_t>(value);
}

bool Json::equals(const Json& other) const {
  if (kind != other.kind) return false;
  switch (kind) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return boolean == other.boolean;
    case Kind::kNumber:
      return integer() && other.integer() ? integer() == other.integer()
                                          : number() == other.number();
    case Kind::kString:
      return text == other.text;
    case Kind::kArray:
      return std::equal(items.begin(), items.end(), other.items.begin(), other.items.end(),
                        [](const Json& a, const Json& b) { return a.equals(b); });
    case Kind::kObject:
      return members.size() == other.members.size() &&
             std::all_of(members.begin(), members.end(), [&other](const Member& member) {
               const Json* found = other.find(member.first);
               return found != nullptr && member.second.equals(*found);
             });
  }
  return false;
}

Result<Json> parse_json(std::string_view text, std::string_view what) {
  const auto refuse = [what](const std::string& why) {
    return Status(StatusCode::kInvalidArgument, std::string(what) + ": " + why);
  };
  if (text.size() > kMaxTextBytes) {
    return refuse("has " + std::to_string(text.size()) + " bytes, at most " +
                  std::to_string(kMaxTextBytes) + " are allowed");
  }
  bj::parse_options options;
  options.max_depth = 2 * kMaxDepth + 8;
  bj::basic_parser<Builder> parser(options);
  bj::error_code error;
  const size_t read = parser.write_some(false, text.data(), text.size(), error);
  Builder& builder = parser.handler();
  if (!builder.repeated.empty()) {
    return refuse("the key " + quote_json(builder.repeated) + " occurs twice in one object");
  }
  if (error) {
    const std::string why = error == bj::error::too_deep     ? "is nested too deeply"
                            : error == bj::error::not_number ? "has a number that is no double"
                            : error == bj::error::incomplete
                                ? "ends too early"
                                : "is not JSON (" + error.message() + ")";
    return refuse(why + ", at byte " + std::to_string(read));
  }
  if (text.find_first_not_of(" \t\r\n", read) != std::string_view::npos) {
    return refuse("has more after its end, at byte " + std::to_string(read));
  }
  return std::move(builder.stack.front().items.front());
}

std::string quote_json(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string write_json(const Json& value) {
  std::string out;
  write(value, &out);
  return out;
}

}  // namespace fathom::grammar
