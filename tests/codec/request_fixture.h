// Requests as JSON text, read with the released names of models and a few aliases.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "codec/prompt.h"
#include "codec/request.h"

namespace fathom::codec {

inline ConvertOptions test_options() {
  ConvertOptions options;
  options.models["m"] = ModelVersion::kV41Flash;
  options.models["v4"] = ModelVersion::kV4Pro;
  return options;
}

// The request, which must be one.
inline ConversationRequest read(Protocol protocol, std::string_view body,
                                const ConvertOptions& options = test_options()) {
  Result<ConversationRequest> request = read_request(protocol, body, options);
  EXPECT_TRUE(request) << request.error().message() << "\n" << body;
  return request ? *std::move(request) : ConversationRequest();
}

// The text of its error, which it must have.
inline std::string error_of(Protocol protocol, std::string_view body,
                            const ConvertOptions& options = test_options()) {
  const Result<ConversationRequest> request = read_request(protocol, body, options);
  EXPECT_FALSE(request) << body;
  return request ? "" : request.error().message();
}

inline std::string text_of_prompt(const Conversation& conversation,
                                  ModelVersion version = ModelVersion::kV41Flash) {
  RenderOptions options;
  options.version = version;
  const Result<Prompt> prompt = render_prompt(conversation, options);
  EXPECT_TRUE(prompt) << prompt.error().message();
  return prompt ? prompt->text : "";
}

inline ConversationRequest read_chat(std::string_view fields) {
  return read(Protocol::kChatCompletions, R"({"model":"m",)" + std::string(fields) + "}");
}
inline ConversationRequest read_responses(std::string_view fields) {
  return read(Protocol::kResponses, R"({"model":"m",)" + std::string(fields) + "}");
}
inline ConversationRequest read_messages(std::string_view fields) {
  return read(Protocol::kMessages, R"({"model":"m",)" + std::string(fields) + "}");
}
inline std::string chat_error(std::string_view fields) {
  return error_of(Protocol::kChatCompletions, R"({"model":"m",)" + std::string(fields) + "}");
}
inline std::string responses_error(std::string_view fields) {
  return error_of(Protocol::kResponses, R"({"model":"m",)" + std::string(fields) + "}");
}
inline std::string messages_error(std::string_view fields) {
  return error_of(Protocol::kMessages, R"({"model":"m",)" + std::string(fields) + "}");
}

inline constexpr std::string_view kUserX = R"("messages":[{"role":"user","content":"x"}])";

}  // namespace fathom::codec
