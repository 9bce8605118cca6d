// A value of a JSON document and the path to it, so that every error can say where it is.
// Private to the reading of tokenizer.json; the one place that pulls in Boost.JSON.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fathom/status.h"

namespace fathom::codec {

class JsonField {
 public:
  JsonField(const boost::json::value* value, std::string path)
      : value_(value), path_(std::move(path)) {}

  const boost::json::value& value() const { return *value_; }
  const std::string& path() const { return path_; }
  bool is_null() const { return value_->is_null(); }

  // The member `name`; an error if this is no object or has no such member.
  Result<JsonField> member(std::string_view name) const;
  // The same, but nullopt if the member is missing or null.
  Result<std::optional<JsonField>> optional_member(std::string_view name) const;
  JsonField element(size_t index) const;

  Result<const boost::json::object*> object() const;
  Result<const boost::json::array*> array() const;
  Result<std::string_view> string() const;
  Result<bool> boolean() const;
  // An integer from 0 to `max`.
  Result<int32_t> integer(int32_t max) const;

  // The boolean member `name`, or `fallback` if it is missing.
  Result<bool> flag(std::string_view name, bool fallback) const;
  // The string member "type".
  Result<std::string_view> type() const;

  // kDataLoss: "PATH: what".
  Status damaged(std::string_view what) const;
  // kUnimplemented: "PATH: what is not supported".
  Status unsupported(std::string_view what) const;

 private:
  std::string member_path(std::string_view name) const;

  const boost::json::value* value_;
  std::string path_;
};

}  // namespace fathom::codec
