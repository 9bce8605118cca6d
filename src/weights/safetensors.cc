#include "weights/safetensors.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>

#include "weights/strict_json.h"

namespace fathom::weights {
namespace {

namespace json = boost::json;

constexpr size_t kLengthBytes = 8;
constexpr DType kDTypes[] = {DType::kF32, DType::kBf16, DType::kF8E4M3, DType::kF8E8M0, DType::kI8};

Status damaged(std::string message) { return {StatusCode::kDataLoss, std::move(message)}; }

// A tensor's name as it may be shown: hostile names may be long or hold control characters.
std::string shown(std::string_view name) {
  constexpr size_t kShownMax = 120;
  std::string out = "tensor \"";
  for (const char c : name.substr(0, kShownMax)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return out + (name.size() > kShownMax ? "...\"" : "\"");
}

std::optional<int64_t> as_count(const json::value& v) {
  const int64_t* i = v.if_int64();
  if (i == nullptr || *i < 0) return std::nullopt;
  return *i;
}

// The bytes that a shape needs, or nullopt if they do not fit in 63 bits.
std::optional<int64_t> bytes_of(const Shape& shape, DType dtype) {
  int64_t n = dtype_bytes(dtype);
  for (int32_t i = 0; i < shape.rank; ++i) {
    if (__builtin_mul_overflow(n, shape[i], &n)) return std::nullopt;
  }
  return n;
}

Status read_dtype(const json::object& fields, SafetensorsEntry* entry) {
  const json::value* v = fields.if_contains("dtype");
  const json::string* name = v == nullptr ? nullptr : v->if_string();
  if (name == nullptr) return damaged("no \"dtype\" string");
  const std::string_view text(name->data(), name->size());
  for (const DType dtype : kDTypes) {
    if (text == dtype_name(dtype)) {
      entry->dtype = dtype;
      return {};
    }
  }
  return {StatusCode::kFailedPrecondition, "dtype \"" + std::string(text.substr(0, 20)) +
                                               "\"; expected F32, BF16, F8_E4M3, F8_E8M0 or I8"};
}

Status read_shape(const json::object& fields, SafetensorsEntry* entry) {
  const json::value* v = fields.if_contains("shape");
  const json::array* dims = v == nullptr ? nullptr : v->if_array();
  if (dims == nullptr) return damaged("no \"shape\" list");
  if (dims->size() > entry->shape.dims.size()) {
    return {StatusCode::kFailedPrecondition,
            std::to_string(dims->size()) + " dimensions; at most 3 are known"};
  }
  for (const json::value& dim : *dims) {
    const std::optional<int64_t> n = as_count(dim);
    if (!n) return damaged("a dimension of \"shape\" is no count: " + json::serialize(dim));
    entry->shape.dims[static_cast<size_t>(entry->shape.rank++)] = *n;
  }
  return {};
}

// Reads one tensor of the header; its offset is still counted from the start of the data.
// start.
Status read_entry(const json::value& value, int64_t data_bytes, SafetensorsEntry* entry) {
  const json::object* fields = value.if_object();
  if (fields == nullptr) return damaged("not a JSON object");
  for (const auto& field : *fields) {
    const std::string_view key(field.key().data(), field.key().size());
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return damaged("unknown field \"" + std::string(key.substr(0, 40)) + "\"");
    }
  }
  FATHOM_TRY(read_dtype(*fields, entry));
  FATHOM_TRY(read_shape(*fields, entry));
  const std::optional<int64_t> needed = bytes_of(entry->shape, entry->dtype);
  if (!needed) return damaged("shape " + to_string(entry->shape) + " overflows");

  const json::value* v = fields->if_contains("data_offsets");
  const json::array* offsets = v == nullptr ? nullptr : v->if_array();
  if (offsets == nullptr || offsets->size() != 2) return damaged("no \"data_offsets\" pair");
  const std::optional<int64_t> begin = as_count((*offsets)[0]);
  const std::optional<int64_t> end = as_count((*offsets)[1]);
  if (!begin || !end || *begin > *end) {
    return damaged("bad data_offsets " + json::serialize(*v));
  }
  if (*end - *begin != *needed) {
    return damaged("shape " + to_string(entry->shape) + " of " +
                   std::string(dtype_name(entry->dtype)) + " needs " + std::to_string(*needed) +
                   " bytes, its data_offsets give " + std::to_string(*end - *begin));
  }
  if (*end > data_bytes) {
    return damaged("its data end at byte " + std::to_string(*end) + ", but the file has only " +
                   std::to_string(data_bytes) +
                   " bytes of data: it is truncated; download it again");
  }
  entry->offset = *begin;
  return {};
}

// Splits the file: the header's text, checked for size.
Result<std::string_view> header_text(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return damaged("only " + std::to_string(file.size()) +
                   " bytes; a safetensors file begins with 8 bytes of header length");
  }
  uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > static_cast<uint64_t>(kSafetensorsHeaderBytesMax)) {
    return damaged("header of " + std::to_string(length) + " bytes, at most " +
                   std::to_string(kSafetensorsHeaderBytesMax) +
                   " are allowed: not a safetensors file");
  }
  if (length > file.size() - kLengthBytes) {
    return damaged("header of " + std::to_string(length) + " bytes, but the file has only " +
                   std::to_string(file.size()) + ": it is truncated; download it again");
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes,
                              static_cast<size_t>(length));
  if (text.empty() || text.front() != '{') {
    return damaged("the header is no JSON object: not a safetensors file");
  }
  return text;
}

// Wants the tensors, sorted by offset, to follow one another from 0 to data_bytes.
Status check_cover(std::span<const SafetensorsEntry> tensors, int64_t data_bytes) {
  int64_t expected = 0;
  for (const SafetensorsEntry& t : tensors) {
    if (t.offset != expected) {
      return damaged(shown(t.name) + ": begins at byte " + std::to_string(t.offset) +
                     " of the data, expected " + std::to_string(expected) +
                     (t.offset < expected ? ": it overlaps another tensor" : ": there is a hole"));
    }
    expected += *bytes_of(t.shape, t.dtype);
  }
  if (expected != data_bytes) {
    return damaged(std::to_string(data_bytes) + " bytes of data, the header describes " +
                   std::to_string(expected));
  }
  return {};
}

Result<std::vector<SafetensorsEntry>> parse(std::span<const std::byte> file) {
  FATHOM_ASSIGN(const std::string_view text, header_text(file));
  FATHOM_ASSIGN(const json::value root, parse_strict_json(text, "header"));
  const json::object* object = root.if_object();
  if (object == nullptr) return damaged("the header is no JSON object");

  const int64_t data_begin = static_cast<int64_t>(kLengthBytes + text.size());
  const int64_t data_bytes = static_cast<int64_t>(file.size()) - data_begin;
  std::vector<SafetensorsEntry> tensors;
  tensors.reserve(object->size());
  for (const auto& member : *object) {
    SafetensorsEntry entry;
    entry.name.assign(member.key().data(), member.key().size());
    if (entry.name == "__metadata__") {
      if (!member.value().is_object()) return damaged("__metadata__ is no JSON object");
      continue;
    }
    FATHOM_TRY(read_entry(member.value(), data_bytes, &entry).with_context(shown(entry.name)));
    tensors.push_back(std::move(entry));
  }
  // Empty tensors share their offset with a neighbour: they come first.
  std::ranges::sort(tensors, [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    const int64_t a_bytes = *bytes_of(a.shape, a.dtype);
    const int64_t b_bytes = *bytes_of(b.shape, b.dtype);
    return std::tie(a.offset, a_bytes, a.name) < std::tie(b.offset, b_bytes, b.name);
  });
  FATHOM_TRY(check_cover(tensors, data_bytes));
  for (SafetensorsEntry& t : tensors) t.offset += data_begin;
  return tensors;
}

}  // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> file,
                                                        std::string_view where) {
  Result<std::vector<SafetensorsEntry>> tensors = parse(file);
  if (!tensors) return std::move(tensors).error().with_context(where);
  return tensors;
}

std::string make_safetensors_header(std::span<const SafetensorsEntry> tensors) {
  std::string text = "{";
  int64_t offset = 0;
  for (const SafetensorsEntry& t : tensors) {
    const int64_t end = offset + t.shape.num_elements() * dtype_bytes(t.dtype);
    if (text.size() > 1) text += ',';
    text += json::serialize(json::string(t.name));
    text += ":{\"dtype\":\"";
    text += dtype_name(t.dtype);
    text += "\",\"shape\":[";
    for (int32_t i = 0; i < t.shape.rank; ++i) {
      if (i > 0) text += ',';
      text += std::to_string(t.shape[i]);
    }
    text += "],\"data_offsets\":[" + std::to_string(offset) + ',' + std::to_string(end) + "]}";
    offset = end;
  }
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  std::string out(kLengthBytes, '\0');
  std::memcpy(out.data(), &length, kLengthBytes);
  return out + text;
}

}  // namespace fathom::weights
