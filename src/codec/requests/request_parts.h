// What the three request readers have in common: models, thinking, sampling values, stop strings,
// placeholders.  Errors are texts for clients.
//
// Private to the request readers.  Thread: any; pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codec/request.h"
#include "codec/requests/shape.h"

namespace fathom::codec {

// An error of kind bad request.
Status bad_request(std::string text);

Result<ModelVersion> resolve_model(const JsonValue& body, const ConvertOptions& options);

// Checks the shape of a value of effort: one of the names, or an integer from 1 to 100.
void check_effort_shape(const Shape& effort);
// Checks the shape of {"type": "enabled" | "adaptive" | "disabled"}.
void check_thinking_shape(const Shape& thinking);
// Sets thinking and effort.  `type` and `effort` are null if the request has none.
void resolve_thinking(const std::string* type, const JsonValue* effort, bool default_thinking,
                      Conversation* conversation);

// A number as the 32-bit float that clients see; nullopt if there is none.
std::optional<float> float_field(const JsonValue& body, std::string_view key);
std::optional<uint64_t> natural_field(const JsonValue& body, std::string_view key);

Status check_temperature(std::optional<float> temperature);
Status check_top_p(std::optional<float> top_p);
// Checks [1, bound], the bound being that of the mode.
Status check_max_tokens(std::optional<uint64_t> max_tokens, bool thinking,
                        const ConvertOptions& options);
// The values that the engine gets.
void resolve_sampling(std::optional<float> temperature, std::optional<float> top_p,
                      const ConvertOptions& options, ConversationRequest* request);

// At most 16, none empty.  `single` names it 'stop', otherwise 'stop[i]'.
Status check_stop(const std::vector<std::string>& stop, bool single);

// What an assistant turn without reasoning gets, and which are refused; `field` names the field in
// the error.
Status settle_reasoning(std::string_view field, const ConvertOptions& options,
                        Conversation* conversation);

// The word is in the content of a message.
bool mentions_json(const std::vector<InputMessage>& messages);

// Joins blocks by a blank line, and keeps the places of images.
class ContentBuilder {
 public:
  explicit ContentBuilder(ModelVersion version) : version_(version) {}
  void add_text(std::string text);
  void add_image(ImageSource source);
  // V4 knows no images: a text takes the place of one, whatever it is.  True if that was done.
  bool replaces_image();
  size_t num_images() const { return images_.size(); }
  void move_to(InputMessage* message);

 private:
  void separate();

  ModelVersion version_;
  bool is_first_ = true;
  std::string text_;
  std::vector<ImageSource> images_;
};

}  // namespace fathom::codec
