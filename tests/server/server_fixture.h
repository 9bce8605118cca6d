// A server on a free port with a scripted engine and the tokenizer of the demo model.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "codec/json_text.h"
#include "codec/tokenizer.h"
#include "harness/http_client.h"
#include "server/scripted_engine.h"
#include "server/server.h"

namespace fathom::server {

using harness::HttpClient;

inline const codec::Tokenizer& demo_tokenizer() {
  static const auto tokenizer =
      codec::Tokenizer::load(FATHOM_SOURCE_DIR "/models/demo/tokenizer.json");
  return **tokenizer;
}

class CountingObserver : public Observer {
 public:
  void http_done(const HttpRecord& record) override {
    ++http;
    last_status = record.status;
  }
  void generation_done(const GenerationRecord& record) override {
    ++generations;
    completion_tokens += record.completion_tokens;
  }
  std::atomic<int> http{0}, last_status{0}, generations{0};
  std::atomic<int64_t> completion_tokens{0};
};

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    options_.http.port = 0;
    options_.default_thinking = false;
    model_.names = {"demo", "alias"};
    model_.tokenizer = &demo_tokenizer();
    model_.context_tokens = 1000;
    model_.fingerprint = "fp_test";
    model_.program_version = "0.0";
  }
  void TearDown() override { server_.reset(); }

  void start(std::string_view keys = "") {
    ApiKeys loaded;
    if (!keys.empty()) {
      auto parsed =
          ApiKeys::parse(keys, "keys", options_.key_requests_per_minute, options_.key_concurrency);
      ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
      loaded = *std::move(parsed);
    }
    auto server = Server::create(options_, model_, std::move(loaded), engine_, observer_);
    ASSERT_TRUE(server.has_value());
    server_ = *std::move(server);
    const Status status = server_->start();
    ASSERT_TRUE(status.ok()) << status.message();
  }
  void say(std::string_view text) { engine_.answer = with_end(text); }
  std::vector<int32_t> with_end(std::string_view text) const {
    std::vector<int32_t> ids = demo_tokenizer().encode(text, /*recognize_added=*/true);
    ids.push_back(*demo_tokenizer().find("<｜end▁of▁sentence｜>"));
    return ids;
  }
  HttpClient::Reply get(std::string_view path, std::string_view headers = "") {
    return HttpClient(server_->port()).get(path, headers);
  }
  HttpClient::Reply post(std::string_view path, std::string_view body,
                         std::string_view headers = "") {
    return HttpClient(server_->port()).post(path, body, headers);
  }
  static codec::JsonValue json(const std::string& text) {
    auto value = codec::parse_json(text);
    EXPECT_TRUE(value.has_value()) << text;
    return value ? *value : codec::JsonValue();
  }
  // The member at a path of names and indices: "choices.0.message.content".
  static codec::JsonValue at(const codec::JsonValue& value, std::string_view path) {
    const codec::JsonValue* found = &value;
    while (found != nullptr && !path.empty()) {
      const size_t dot = std::min(path.find('.'), path.size());
      const std::string name(path.substr(0, dot));
      path.remove_prefix(std::min(dot + 1, path.size()));
      if (const codec::JsonArray* list = found->if_array()) {
        const size_t index = std::stoul(name);
        found = index < list->size() ? &(*list)[index] : nullptr;
      } else {
        found = found->find(name);
      }
    }
    return found == nullptr ? codec::JsonValue("(missing)") : *found;
  }
  static std::string text_at(const std::string& body, std::string_view path) {
    const codec::JsonValue value = at(json(body), path);
    return value.if_string() != nullptr ? *value.if_string()
                                        : codec::write_json(value, codec::JsonStyle::kCompact);
  }
  // The data of each server-sent event.
  static std::vector<std::string> events(const std::string& stream) {
    std::vector<std::string> out;
    size_t at = 0;
    while ((at = stream.find("data: ", at)) != stream.npos) {
      const size_t end = stream.find('\n', at);
      out.push_back(stream.substr(at + 6, end - at - 6));
      at = end;
    }
    return out;
  }

  ServerOptions options_;
  ServedModel model_;
  ScriptedEngine engine_;
  CountingObserver observer_;
  std::unique_ptr<Server> server_;
};

inline constexpr std::string_view kChat = "/v1/chat/completions";
inline constexpr std::string_view kHello = R"({"messages":[{"role":"user","content":"hi"}]})";
inline constexpr std::string_view kHelloStream =
    R"({"stream":true,"messages":[{"role":"user","content":"hi"}]})";

}  // namespace fathom::server
