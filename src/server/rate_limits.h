// How much each key may ask for: a token bucket of requests a minute, and requests at once.
//
// Thread: any.
#pragma once

#include <mutex>
#include <vector>

#include "server/api_keys.h"

namespace fathom::server {

class RateLimits {
 public:
  // Without keys there is one user, index 0, with the given limits.
  explicit RateLimits(std::vector<ApiKey> keys);

  struct Verdict {
    bool allowed = true;
    int retry_after_s = 0;  // if not allowed
    const char* why = "";
  };
  // Takes one request of the key; `now_s` is monotonic seconds.  leave() when it is answered.
  Verdict enter(int key, double now_s);
  void leave(int key);
  int at_once(int key) const;

 private:
  struct User {
    ApiKey key;
    double tokens = 0;  // requests that may come now
    double updated_s = 0;
    bool seen = false;
    int at_once = 0;
  };
  mutable std::mutex mutex_;
  std::vector<User> users_;
};

}  // namespace fathom::server
