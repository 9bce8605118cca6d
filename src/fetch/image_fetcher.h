// The codec's port for image URLs, on UrlFetcher.
#pragma once

#include "codec/image_source.h"
#include "fetch/url_fetcher.h"

namespace fathom::fetch {

// Thread: any, one object for many threads.  fetch() makes up to eight threads of its own while it
// runs, and takes no longer than total_timeout_ms of the policy.
class UrlImageFetcher : public codec::ImageFetcher {
 public:
  explicit UrlImageFetcher(FetchPolicy policy) : policy_(std::move(policy)) {}

  std::vector<Fetched> fetch(std::span<const std::string> urls, size_t max_image_bytes,
                             size_t max_total_bytes) override;

 private:
  FetchPolicy policy_;
};

}  // namespace fathom::fetch
