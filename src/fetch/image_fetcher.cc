#include "fetch/image_fetcher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace fathom::fetch {
namespace {

constexpr size_t kMaxThreads = 8;

codec::ImageErrorKind kind_of(FetchError::Kind kind) {
  switch (kind) {
    case FetchError::Kind::kInvalidUrl:
      return codec::ImageErrorKind::kInvalidUrl;
    case FetchError::Kind::kRefused:
      return codec::ImageErrorKind::kDestinationRejected;
    case FetchError::Kind::kTooLarge:
      return codec::ImageErrorKind::kImageTooLarge;
    case FetchError::Kind::kWrongType:
      return codec::ImageErrorKind::kUnsupportedMediaType;
    case FetchError::Kind::kUnavailable:
    case FetchError::Kind::kNoLibrary:
      break;
  }
  return codec::ImageErrorKind::kFetch;
}

}  // namespace

std::vector<codec::ImageFetcher::Fetched> UrlImageFetcher::fetch(std::span<const std::string> urls,
                                                                 size_t max_image_bytes,
                                                                 size_t max_total_bytes) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(policy_.total_timeout_ms);
  std::vector<Fetched> out(urls.size());
  std::atomic<size_t> next{0};
  std::atomic<size_t> total{0};
  std::atomic<bool> give_up{false};  // together they are too large
  const auto work = [&] {
    for (size_t i = next++; i < urls.size(); i = next++) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      FetchPolicy policy = policy_;
      policy.total_timeout_ms = std::max<int64_t>(0, left.count());
      FetchResult got = UrlFetcher(std::move(policy)).fetch(urls[i], max_image_bytes, [&] {
        return give_up.load();
      });
      if (got.error != nullptr) {
        out[i].error =
            give_up ? codec::ImageErrorKind::kTotalSizeTooLarge : kind_of(got.error->kind);
        out[i].retryable = got.error->retryable && !give_up;
        continue;
      }
      out[i].bytes = std::move(got.bytes);
      if (total.fetch_add(out[i].bytes.size()) + out[i].bytes.size() > max_total_bytes) {
        give_up = true;
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(urls.size(), kMaxThreads); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return out;
}

}  // namespace fathom::fetch
