#include "runner/mask_filler.h"

namespace fathom::runner {

MaskFiller::~MaskFiller() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void MaskFiller::start() {
  if (guides_.empty() || !asynchronous_) return;
  {
    const std::lock_guard lock(mutex_);
    is_filling_ = true;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  changed_.notify_all();
}

void MaskFiller::wait() {
  if (guides_.empty()) return;
  if (asynchronous_) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_filling_; });
  } else {
    fill_all();
  }
  guides_.clear();
}

void MaskFiller::abandon() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_filling_; });
  }
  guides_.clear();
}

void MaskFiller::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || is_filling_; });
    if (stop_) return;
    lock.unlock();
    fill_all();
    lock.lock();
    is_filling_ = false;
    changed_.notify_all();
  }
}

void MaskFiller::fill_all() {
  for (grammar::Guide* guide : guides_) guide->fill();
}

}  // namespace fathom::runner
