#include "server/response_store.h"

namespace fathom::server {
namespace {

constexpr size_t kEntryBytes = 256;  // what an entry takes beside its texts, about

std::string key_of(std::string_view owner, std::string_view id) {
  return std::string(owner) + '\n' + std::string(id);  // names of keys have no line break
}

}  // namespace

void ResponseStore::put(std::string_view owner, std::string_view id, Stored stored, double now_s) {
  const std::lock_guard lock(mutex_);
  expire(now_s);
  std::string key = key_of(owner, id);
  if (const auto old = by_key_.find(key); old != by_key_.end()) remove(old->second);
  const size_t bytes = stored.items.size() + stored.response.size() + 2 * key.size() + kEntryBytes;
  if (bytes > max_bytes_ / 4) return;
  while (bytes_ + bytes > max_bytes_ && !entries_.empty()) remove(std::prev(entries_.end()));
  entries_.push_front({std::move(key), std::move(stored), now_s + ttl_s_, bytes});
  by_key_.emplace(entries_.front().key, entries_.begin());
  bytes_ += bytes;
}

std::optional<ResponseStore::Stored> ResponseStore::get(std::string_view owner, std::string_view id,
                                                        double now_s) {
  const std::lock_guard lock(mutex_);
  const auto it = by_key_.find(key_of(owner, id));
  if (it == by_key_.end()) return std::nullopt;
  if (it->second->expires_s <= now_s) {
    remove(it->second);
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, it->second);
  return it->second->stored;
}

bool ResponseStore::erase(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto it = by_key_.find(key_of(owner, id));
  if (it == by_key_.end()) return false;
  remove(it->second);
  return true;
}

void ResponseStore::remove(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

void ResponseStore::expire(double now_s) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto next = std::next(it);
    if (it->expires_s <= now_s) remove(it);
    it = next;
  }
}

size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

size_t ResponseStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace fathom::server
