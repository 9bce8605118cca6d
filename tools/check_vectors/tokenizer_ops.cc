// The operations of the tokenizer: tokenize, and the kinds of the tokenizer's own vectors, which
// hold what is expected among their fields.
#include <array>
#include <charconv>

#include "check_vectors/compare.h"
#include "check_vectors/ops.h"

namespace fathom::check_vectors {

namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;
using codec::ModelVersion;

JsonValue list_of_ids(const std::vector<int32_t>& ids) {
  JsonArray list;
  for (const int32_t id : ids) list.emplace_back(static_cast<int64_t>(id));
  return list;
}

std::vector<int32_t> ids_of(const JsonValue& value) {
  std::vector<int32_t> ids;
  for (const JsonValue& id : *value.if_array()) {
    ids.push_back(static_cast<int32_t>(*id.if_int64()));
  }
  return ids;
}

Outcome run_tokenize(const JsonObject& vector, Context& context) {
  const codec::Tokenizer* tokenizer = context.tokenizer(
      text_of(vector, "tokenizer") == "v4" ? ModelVersion::kV4Pro : ModelVersion::kV41Flash);
  if (tokenizer == nullptr) return Outcome::failed("internal", "no tokenizer");
  const JsonValue* added = vector.find("added_tokens");
  const bool recognize_added = added == nullptr || added->if_bool() == nullptr || *added->if_bool();
  const std::vector<int32_t> ids = tokenizer->encode(text_of(vector, "text"), recognize_added);
  JsonObject result;
  result.append("ids", list_of_ids(ids));
  result.append("decoded", tokenizer->decode(ids, /*skip_special=*/false));
  return Outcome::of(std::move(result));
}

// Only some vectors record the decoded text; it must then be the text itself.
void normalize_tokenize(JsonValue* result) { result->if_object()->erase("decoded"); }

// Fails with the first difference between a field and what was computed.
class Fields {
 public:
  explicit Fields(const JsonObject& vector) : vector_(vector) {}
  // The field `name`, or the one that it equals when it is absent.
  void expect(std::string_view name, std::string_view otherwise, const JsonValue& actual) {
    const JsonValue* expected = vector_.find(name);
    if (expected == nullptr) expected = vector_.find(otherwise);
    if (expected == nullptr) {
      what_ = "no field " + std::string(name);
    } else if (std::string what = difference(*expected, actual); !what.empty() && what_.empty()) {
      what_ = std::string(name) + what;
    }
  }
  // A vector of this kind has no result of its own; null stands for agreement.
  Outcome outcome() const {
    return what_.empty() ? Outcome::of(nullptr) : Outcome::failed("internal", what_);
  }

 private:
  const JsonObject& vector_;
  std::string what_;
};

Outcome run_encode(const JsonObject& vector, Context& context) {
  const codec::Tokenizer* v41 = context.tokenizer(ModelVersion::kV41Flash);
  const codec::Tokenizer* v4 = context.tokenizer(ModelVersion::kV4Pro);
  if (v41 == nullptr || v4 == nullptr) return Outcome::failed("internal", "no tokenizer");
  const std::string_view text = text_of(vector, "text");
  Fields fields(vector);
  fields.expect("ids", "ids", list_of_ids(v41->encode(text, true)));
  fields.expect("ids_v4", "ids", list_of_ids(v4->encode(text, true)));
  fields.expect("ids_plain", "ids", list_of_ids(v41->encode(text, false)));
  return fields.outcome();
}

Outcome run_encode_bytes(const JsonObject& vector, Context& context) {
  const codec::Tokenizer* v41 = context.tokenizer(ModelVersion::kV41Flash);
  if (v41 == nullptr) return Outcome::failed("internal", "no tokenizer");
  const std::string_view hex = text_of(vector, "bytes");
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    int byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  const std::vector<int32_t> ids = v41->encode(bytes, true);
  Fields fields(vector);
  fields.expect("ids", "ids", list_of_ids(ids));
  fields.expect("text", "text", v41->decode(ids, /*skip_special=*/false));
  return fields.outcome();
}

Outcome run_decode(const JsonObject& vector, Context& context) {
  const codec::Tokenizer* v41 = context.tokenizer(ModelVersion::kV41Flash);
  const JsonValue* list = vector.find("ids");
  if (v41 == nullptr || list == nullptr || list->if_array() == nullptr) {
    return Outcome::failed("internal", "no tokenizer, or no ids");
  }
  const std::vector<int32_t> ids = ids_of(*list);
  Fields fields(vector);
  fields.expect("text", "text", v41->decode(ids, /*skip_special=*/false));
  fields.expect("text_skip", "text", v41->decode(ids, /*skip_special=*/true));
  return fields.outcome();
}

constexpr std::array kOps = {
    Op{"tokenize", run_tokenize, normalize_tokenize},
    Op{"tokenizer_encode", run_encode},
    Op{"tokenizer_encode_bytes", run_encode_bytes},
    Op{"tokenizer_decode", run_decode},
};

}  // namespace

std::span<const Op> tokenizer_ops() { return kOps; }

}  // namespace fathom::check_vectors
