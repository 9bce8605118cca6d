// Any bytes as a Chat Completions body: an error or a request, which then can be rendered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "codec/chat_request.h"
#include "codec/stop_strings.h"

using namespace fathom::codec;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fathom::Result<ChatRequest> request = parse_chat_request(text, "fuzz");
  if (!request) {
    if (request.error().message().empty()) std::abort();
    return 0;
  }
  const Think think = request->think.value_or(Think::kHigh);
  if (!render_chat(request->messages, think)) std::abort();
  fathom::Result<StopStringFinder> finder = StopStringFinder::create(request->stop);
  if (!finder) return 0;
  std::string shown;
  for (const ChatMessage& message : request->messages) shown += finder->push(message.content);
  shown += finder->finish();
  for (const std::string& stop : request->stop) {
    if (shown.find(stop) != std::string::npos) std::abort();
  }
  return 0;
}
