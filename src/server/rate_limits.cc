#include "server/rate_limits.h"

#include <algorithm>
#include <cmath>

namespace fathom::server {

RateLimits::RateLimits(std::vector<ApiKey> keys) {
  for (ApiKey& key : keys) users_.push_back({.key = std::move(key)});
}

RateLimits::Verdict RateLimits::enter(int key, double now_s) {
  const std::lock_guard lock(mutex_);
  User& user = users_[static_cast<size_t>(key)];
  if (user.key.concurrency > 0 && user.at_once >= user.key.concurrency) {
    return {false, 1, "too many requests at once with this key"};
  }
  if (user.key.requests_per_minute > 0) {
    // A minute's worth may come in one burst.
    const double most = user.key.requests_per_minute;
    const double rate = most / 60;
    user.tokens = user.seen ? std::min(most, user.tokens + (now_s - user.updated_s) * rate) : most;
    user.seen = true;
    user.updated_s = now_s;
    if (user.tokens < 1) {
      const double wait = (1 - user.tokens) / rate;
      return {false, std::max(1, static_cast<int>(std::ceil(wait))),
              "too many requests a minute with this key"};
    }
    user.tokens -= 1;
  }
  ++user.at_once;
  return {};
}

void RateLimits::leave(int key) {
  const std::lock_guard lock(mutex_);
  --users_[static_cast<size_t>(key)].at_once;
}

int RateLimits::at_once(int key) const {
  const std::lock_guard lock(mutex_);
  return users_[static_cast<size_t>(key)].at_once;
}

}  // namespace fathom::server
