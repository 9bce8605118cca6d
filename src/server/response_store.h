// Answers of the Responses protocol that a later request may name (previous_response_id), each with
// all that went before it.  Bounded in bytes and in time; the one that was used least recently goes
// first.  In memory only.
//
// Thread: any.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace fathom::server {

class ResponseStore {
 public:
  ResponseStore(size_t max_bytes, double ttl_s) : max_bytes_(max_bytes), ttl_s_(ttl_s) {}

  struct Stored {
    std::string items;     // JSON array: input and output items, in order
    std::string response;  // JSON object, as the client got it
  };

  // `owner` is the name of the key: others do not find it.  An answer of more than a quarter of all
  // bytes is not kept.
  void put(std::string_view owner, std::string_view id, Stored stored, double now_s);
  std::optional<Stored> get(std::string_view owner, std::string_view id, double now_s);
  bool erase(std::string_view owner, std::string_view id);

  size_t bytes() const;
  size_t size() const;

 private:
  struct Entry {
    std::string key;
    Stored stored;
    double expires_s;
    size_t bytes;
  };
  using Entries = std::list<Entry>;  // most recently used first

  void remove(Entries::iterator entry);
  void expire(double now_s);

  const size_t max_bytes_;
  const double ttl_s_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::map<std::string, Entries::iterator, std::less<>> by_key_;
  size_t bytes_ = 0;
};

}  // namespace fathom::server
