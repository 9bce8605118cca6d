#include "weights/strict_json.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <exception>
#include <limits>
#include <string>
#include <unordered_set>
#include <vector>

namespace fathom::weights {
namespace {

namespace json = boost::json;

// Receives the parser's events, builds the tree and notes the first key that occurs twice.
class StrictHandler {
 public:
  static constexpr std::size_t max_object_size = std::size_t{1} << 24;
  static constexpr std::size_t max_array_size = std::size_t{1} << 24;
  static constexpr std::size_t max_key_size = std::size_t{1} << 16;
  static constexpr std::size_t max_string_size = std::size_t{1} << 24;

  const std::string& duplicate() const { return duplicate_; }
  bool number_out_of_range() const { return number_out_of_range_; }
  json::value release() { return stack_.release(); }

  bool on_document_begin(json::error_code&) {
    stack_.reset();
    return true;
  }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    keys_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t n, json::error_code&) {
    keys_.pop_back();
    stack_.push_object(n);
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t n, json::error_code&) {
    stack_.push_array(n);
    return true;
  }
  bool on_key_part(json::string_view s, std::size_t, json::error_code&) {
    key_.append(s.data(), s.size());
    stack_.push_chars(s);
    return true;
  }
  bool on_key(json::string_view s, std::size_t, json::error_code& ec) {
    key_.append(s.data(), s.size());
    stack_.push_key(s);
    if (!keys_.back().insert(key_).second) {
      duplicate_ = key_;
      ec = json::error::syntax;
      return false;
    }
    key_.clear();
    return true;
  }
  bool on_string_part(json::string_view s, std::size_t, json::error_code&) {
    stack_.push_chars(s);
    return true;
  }
  bool on_string(json::string_view s, std::size_t, json::error_code&) {
    stack_.push_string(s);
    return true;
  }
  bool on_number_part(json::string_view s, json::error_code&) {
    number_.append(s.data(), s.size());
    return true;
  }
  bool on_int64(int64_t i, json::string_view, json::error_code&) {
    number_.clear();
    stack_.push_int64(i);
    return true;
  }
  bool on_uint64(uint64_t u, json::string_view, json::error_code&) {
    number_.clear();
    stack_.push_uint64(u);
    return true;
  }
  // The library's own conversion may be off in the last bit.
  bool on_double(double, json::string_view s, json::error_code& ec) {
    number_.append(s.data(), s.size());
    double d = 0;
    const auto [end, error] = std::from_chars(number_.data(), number_.data() + number_.size(), d);
    if (error != std::errc{} || end != number_.data() + number_.size()) {
      number_out_of_range_ = true;
      ec = json::error::not_number;
      return false;
    }
    number_.clear();
    stack_.push_double(d);
    return true;
  }
  bool on_bool(bool b, json::error_code&) {
    stack_.push_bool(b);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  json::value_stack stack_;
  std::vector<std::unordered_set<std::string>> keys_;  // one set an open object
  std::string key_;
  std::string number_;
  std::string duplicate_;
  bool number_out_of_range_ = false;
};

}  // namespace

Result<json::value> parse_strict_json(std::string_view text, std::string_view where) {
  const std::string place(where);
  try {
    json::basic_parser<StrictHandler> parser{json::parse_options{}};
    json::error_code ec;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
    StrictHandler& handler = parser.handler();
    if (!handler.duplicate().empty()) {
      return Status(StatusCode::kDataLoss,
                    place + ": the key \"" + handler.duplicate() + "\" occurs twice");
    }
    if (handler.number_out_of_range()) {
      return Status(StatusCode::kDataLoss, place + ": a number is out of range");
    }
    if (ec) {
      return Status(StatusCode::kDataLoss, place + ": not valid JSON near byte " +
                                               std::to_string(used) + " (" + ec.message() + ")");
    }
    if (used != text.size()) {
      return Status(StatusCode::kDataLoss,
                    place + ": text after the JSON value, at byte " + std::to_string(used));
    }
    return handler.release();
  } catch (const std::exception& e) {
    return Status(StatusCode::kResourceExhausted, place + ": cannot read JSON: " + e.what());
  }
}

}  // namespace fathom::weights
