#include "codec/tokenizer_json.h"

namespace fathom::codec {
namespace {

std::string_view kind_name(const boost::json::value& value) {
  const auto name = boost::json::to_string(value.kind());
  return {name.data(), name.size()};
}

Status wrong_kind(const JsonField& field, std::string_view expected) {
  return field.damaged("expected " + std::string(expected) + ", found " +
                       std::string(kind_name(field.value())));
}

}  // namespace

std::string JsonField::member_path(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

Result<JsonField> JsonField::member(std::string_view name) const {
  FATHOM_ASSIGN(const boost::json::object* members, object());
  const boost::json::value* found = members->if_contains(name);
  if (found == nullptr) return JsonField(value_, member_path(name)).damaged("missing");
  return JsonField(found, member_path(name));
}

Result<std::optional<JsonField>> JsonField::optional_member(std::string_view name) const {
  FATHOM_ASSIGN(const boost::json::object* members, object());
  const boost::json::value* found = members->if_contains(name);
  if (found == nullptr || found->is_null()) return std::optional<JsonField>();
  return std::optional<JsonField>(JsonField(found, member_path(name)));
}

JsonField JsonField::element(size_t index) const {
  return {&value_->get_array()[index], path_ + "[" + std::to_string(index) + "]"};
}

Result<const boost::json::object*> JsonField::object() const {
  if (!value_->is_object()) return wrong_kind(*this, "an object");
  return &value_->get_object();
}

Result<const boost::json::array*> JsonField::array() const {
  if (!value_->is_array()) return wrong_kind(*this, "an array");
  return &value_->get_array();
}

Result<std::string_view> JsonField::string() const {
  if (!value_->is_string()) return wrong_kind(*this, "a string");
  const boost::json::string& text = value_->get_string();
  return std::string_view(text.data(), text.size());
}

Result<bool> JsonField::boolean() const {
  if (!value_->is_bool()) return wrong_kind(*this, "true or false");
  return value_->get_bool();
}

Result<int32_t> JsonField::integer(int32_t max) const {
  if (!value_->is_int64() || value_->get_int64() < 0 || value_->get_int64() > max) {
    return damaged("expected an integer from 0 to " + std::to_string(max));
  }
  return static_cast<int32_t>(value_->get_int64());
}

Result<bool> JsonField::flag(std::string_view name, bool fallback) const {
  FATHOM_ASSIGN(const std::optional<JsonField> found, optional_member(name));
  if (!found) return fallback;
  return found->boolean();
}

Result<std::string_view> JsonField::type() const {
  FATHOM_ASSIGN(const JsonField found, member("type"));
  return found.string();
}

Status JsonField::damaged(std::string_view what) const {
  const std::string where = path_.empty() ? "the document" : path_;
  return {StatusCode::kDataLoss, where + ": " + std::string(what)};
}

Status JsonField::unsupported(std::string_view what) const {
  const std::string where = path_.empty() ? "the document" : path_;
  return {StatusCode::kUnimplemented, where + ": " + std::string(what) + " is not supported"};
}

}  // namespace fathom::codec
