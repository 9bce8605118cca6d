// Asks a model several questions at once and prints the answers, in the form of Chat
// Completions, as they end.
//   ask MODEL_FOLDER "first question" "second question" ...
#include <fathom/codec.h>
#include <fathom/open_engine.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

struct Asked {
  std::string question;
  std::unique_ptr<fathom::AnswerReader> reader;
  std::vector<int32_t> ids;
};

// A Chat Completions body with one question.
std::string body_of(const std::string& question) {
  std::string text;
  for (const char c : question) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return R"({"messages":[{"role":"user","content":")" + text +
         R"("}],"thinking":{"type":"disabled"}})";
}

fathom::Status ask(const std::string& model, const std::vector<std::string>& questions) {
  constexpr auto kProtocol = fathom::ApiProtocol::kChatCompletions;
  FATHOM_ASSIGN(const auto codec, fathom::Codec::open(model + "/tokenizer.json"));
  FATHOM_ASSIGN(const auto engine, fathom::open_engine({.model = model}));

  std::map<fathom::RequestId, Asked> running;
  for (const std::string& question : questions) {
    const std::string body = body_of(question);
    FATHOM_ASSIGN(const fathom::RenderedRequest rendered, codec->render(kProtocol, body));
    fathom::Request request;
    request.prompt = rendered.ids;
    request.params.temperature = 0;
    request.params.max_tokens = 100;
    FATHOM_ASSIGN(const fathom::RequestId id, engine->submit(request));
    Asked& asked = running[id];
    asked.question = question;
    FATHOM_ASSIGN(asked.reader, codec->read_answer(kProtocol, body, fathom::AnswerIdentity()));
  }

  while (!running.empty()) {
    for (const fathom::TokenEvent& event : engine->wait(std::chrono::seconds(1))) {
      const auto found = running.find(event.request);
      if (found == running.end()) continue;
      Asked& asked = found->second;
      if (event.finish == fathom::FinishReason::kError) return event.error;
      if (event.token >= 0) FATHOM_TRY(asked.reader->push_ids({&event.token, 1}, nullptr));
      if (event.finish == fathom::FinishReason::kNone) continue;
      const bool is_cut = event.finish == fathom::FinishReason::kLength;
      asked.reader->finish(is_cut ? fathom::AnswerEnd::kLength : fathom::AnswerEnd::kStop, nullptr);
      std::printf("%s\n%s\n", asked.question.c_str(), asked.reader->json().c_str());
      running.erase(found);
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: ask MODEL_FOLDER QUESTION...\n");
    return 2;
  }
  const fathom::Status status = ask(argv[1], {argv + 2, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "ask: %s\n", status.to_string().c_str());
  return 1;
}
