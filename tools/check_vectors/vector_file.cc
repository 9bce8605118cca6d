#include "check_vectors/vector_file.h"

#include <fstream>
#include <sstream>

#include "check_vectors/ops.h"
#include "codec/json_text.h"

namespace fathom::check_vectors {

namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;

Result<std::string> read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return Status(StatusCode::kNotFound, file.string() + ": cannot be read");
  std::ostringstream text;
  text << stream.rdbuf();
  return std::move(text).str();
}

Result<std::vector<JsonObject>> read_lines(const std::filesystem::path& file) {
  FATHOM_ASSIGN(const std::string text, read_text(file));
  std::vector<JsonObject> lines;
  std::istringstream stream(text);
  size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.empty()) continue;
    Result<JsonValue> value = codec::parse_json(line);
    const JsonObject* object = value ? value->if_object() : nullptr;
    if (object == nullptr) {
      return Status(StatusCode::kDataLoss,
                    file.string() + ":" + std::to_string(number) + ": not a JSON object");
    }
    lines.push_back(*object);
  }
  return lines;
}

// What a vector expects: `ok` with `result`, or `error`.
void set_expected(const JsonObject& from, Vector* vector) {
  if (const JsonValue* error = from.find("error")) {
    vector->ok = false;
    if (const JsonObject* object = error->if_object()) {
      vector->error_kind = text_of(*object, "kind");
      vector->error_detail = text_of(*object, "detail");
    }
  } else if (const JsonValue* result = from.find("result")) {
    vector->result = *result;
  }
}

Vector vector_of_line(const JsonObject& line) {
  Vector vector;
  vector.name = text_of(line, "name");
  vector.op = text_of(line, "op");
  vector.fault = text_of(line, "fault");
  vector.fields = line;
  set_expected(line, &vector);
  return vector;
}

// Tokenizer vectors have no name; their op is their kind, and what is expected stands in them.
Vector tokenizer_vector(const JsonObject& line, size_t number) {
  Vector vector;
  vector.name = std::string(text_of(line, "group")) + " line " + std::to_string(number);
  vector.op = "tokenizer_" + std::string(text_of(line, "kind"));
  vector.fields = line;
  return vector;
}

Vector derived_vector(const JsonObject& source) {
  Vector vector;
  vector.name = text_of(source, "id");
  vector.op = text_of(source, "area");
  vector.fault = text_of(source, "fault");
  for (const std::string_view key : {"protocol", "encoding", "op"}) {
    if (const JsonValue* value = source.find(key)) vector.fields.set(key, *value);
  }
  const JsonValue* input = source.find("input");
  if (const JsonObject* members = input != nullptr ? input->if_object() : nullptr) {
    for (const auto& [key, value] : *members) vector.fields.set(key, value);
  }
  const JsonValue* expected = source.find("expected");
  if (expected == nullptr) return vector;
  if (const JsonValue* ok = expected->find("ok"); ok != nullptr && ok->if_object() != nullptr) {
    vector.result = *ok;
  } else if (const JsonObject* object = expected->if_object();
             object != nullptr && object->find("error") != nullptr) {
    set_expected(*object, &vector);
  } else {
    vector.result = *expected;
  }
  return vector;
}

Result<std::vector<Vector>> read_derived(const std::filesystem::path& file) {
  FATHOM_ASSIGN(const std::string text, read_text(file));
  Result<JsonValue> document = codec::parse_json(text);
  if (!document) return std::move(document).error().with_context(file.string());
  const JsonValue* list = document->find("vectors");
  const JsonArray* array = list != nullptr ? list->if_array() : nullptr;
  if (array == nullptr) {
    return Status(StatusCode::kDataLoss, file.string() + ": has no list \"vectors\"");
  }
  std::vector<Vector> vectors;
  for (const JsonValue& value : *array) {
    if (const JsonObject* object = value.if_object()) vectors.push_back(derived_vector(*object));
  }
  return vectors;
}

}  // namespace

Result<std::vector<Vector>> read_vectors(const std::filesystem::path& file) {
  if (file.extension() == ".json") return read_derived(file);
  if (file.filename() == "goldens.jsonl") return std::vector<Vector>();  // read with the corpus
  FATHOM_ASSIGN(const std::vector<JsonObject> lines, read_lines(file));
  std::vector<JsonObject> goldens;
  if (file.filename() == "corpus.jsonl") {
    FATHOM_ASSIGN(goldens, read_lines(file.parent_path() / "goldens.jsonl"));
    if (goldens.size() != lines.size()) {
      return Status(StatusCode::kDataLoss,
                    file.string() + ": goldens.jsonl has another number of lines");
    }
  }
  std::vector<Vector> vectors;
  vectors.reserve(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    vectors.push_back(lines[i].find("kind") != nullptr && lines[i].find("op") == nullptr
                          ? tokenizer_vector(lines[i], i + 1)
                          : vector_of_line(lines[i]));
    if (!goldens.empty()) set_expected(goldens[i], &vectors.back());
  }
  return vectors;
}

}  // namespace fathom::check_vectors
