// Who may use the server: keys from a file.
//
// A line is a name, a key or its SHA-256, and limits:
//   alice  sk-3f9c...                        requests_per_minute=60 concurrent=4
//   ci     sha256:9f86d081884c7d65...
// "#" begins a comment.  Names are letters, digits, "_", "-" and "."; keys are 8 to 512 characters
// without spaces.  In memory only digests are kept.
//
// Thread: any; immutable after load.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"

namespace fathom::server {

struct ApiKey {
  std::string name;         // also the salt of its cache: no key sees what another cached
  int requests_per_minute;  // 0: no limit
  int concurrency;          // requests at once; 0: no limit
};

class ApiKeys {
 public:
  // No keys: the server is open.
  ApiKeys() = default;
  // `where` names the file in errors (kInvalidArgument), which name the line, never the key.  The
  // limits are those of keys that have none of their own.
  static Result<ApiKeys> parse(std::string_view text, std::string_view where,
                               int requests_per_minute, int concurrency);

  bool open() const { return keys_.empty(); }
  size_t size() const { return keys_.size(); }
  const std::vector<ApiKey>& keys() const { return keys_; }
  // The index of the key that was presented, or -1.  The time does not depend on where a wrong key
  // differs.
  int find(std::string_view secret) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  std::vector<ApiKey> keys_;
  std::vector<Digest> digests_;
};

}  // namespace fathom::server
