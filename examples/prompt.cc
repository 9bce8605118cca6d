// Shows what a model sees of a request: the prompt and its token ids.  Needs a tokenizer, no
// weights.
//   prompt MODEL_FOLDER < chat_completions_body.json
#include <fathom/codec.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: prompt MODEL_FOLDER < body.json\n");
    return 2;
  }
  const auto codec = fathom::Codec::open(std::string(argv[1]) + "/tokenizer.json");
  if (!codec) {
    std::fprintf(stderr, "prompt: %s\n", codec.error().to_string().c_str());
    return 1;
  }
  const std::string body(std::istreambuf_iterator<char>(std::cin), {});
  const auto rendered = (*codec)->render(fathom::ApiProtocol::kChatCompletions, body);
  if (!rendered) {
    std::fprintf(stderr, "prompt: %s\n", rendered.error().to_string().c_str());
    return 1;
  }
  std::printf("%s\n", rendered->prompt.c_str());
  for (const int32_t id : rendered->ids) std::printf("%d ", id);
  std::printf("\n");
  return 0;
}
