#include "grammar/warm_up.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "grammar/limits.h"
#include "grammar/matcher.h"

namespace fathom::grammar {
namespace {

constexpr size_t kMaxWaiting = 16;

// Of this thread on a processor.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

class Walk {
 public:
  // `stop` ends it from another thread.
  Walk(std::shared_ptr<const CompiledGrammar> grammar, double seconds,
       const std::atomic<bool>& stop)
      : grammar_(std::move(grammar)),
        end_s_(thread_seconds() + seconds),
        stop_(stop),
        mask_(grammar_->vocabulary().mask_words()) {}

  bool is_over() const {
    return stop_ || thread_seconds() >= end_s_ ||
           grammar_->masks().bytes() >= static_cast<int64_t>(kMaxMaskBytes / 2);
  }

  // From the beginning until the text ends, or leads to nothing new any more.  False: nothing was
  // new.
  bool run() {
    constexpr int kEnough = 32;  // steps in a row without a new state
    auto matcher = Matcher::create(grammar_);
    if (!matcher) return false;
    matcher_ = std::move(matcher).value();
    const int64_t num_before = num_new_;
    for (int in_vain = 0; in_vain < kEnough && !is_over();) {
      const bool is_known = matcher_->has_mask();
      if (!matcher_->fill_mask(mask_).ok()) break;
      const bool is_new = !is_known && matcher_->has_mask();  // states without a name stay unknown
      in_vain = is_new ? 0 : in_vain + 1;
      num_new_ += is_new ? 1 : 0;
      if (!step()) break;
    }
    return num_new_ > num_before;
  }

 private:
  // Takes a character behind which the state is new, if one of a few is such; false: the text can
  // only end.
  bool step() {
    constexpr int kTried = 6;
    candidates_.clear();
    const std::vector<int32_t>& characters = grammar_->vocabulary().characters();
    const size_t first = characters.empty() ? 0 : next() % std::min<size_t>(characters.size(), 128);
    for (size_t i = 0; i < characters.size() && candidates_.size() < kTried; ++i) {
      const int32_t token = characters[(first + i) % characters.size()];
      if (allowed(token)) candidates_.push_back(token);
    }
    if (candidates_.empty()) add_any_token();
    if (candidates_.empty()) return false;
    for (const int32_t token : candidates_) {
      if (!matcher_->accept(token)) return false;
      if (!matcher_->has_mask()) return true;
      matcher_->rollback(1);
    }
    return matcher_->accept(candidates_[next() % candidates_.size()]);
  }

  void add_any_token() {
    for (int32_t token = 0; token < grammar_->vocabulary().size(); ++token) {
      if (token == grammar_->vocabulary().end_token() || !allowed(token)) continue;
      candidates_.push_back(token);
      return;
    }
  }

  bool allowed(int32_t token) const {
    const auto place = static_cast<size_t>(token);
    return (mask_[place / 32] >> (place % 32) & 1) != 0;
  }

  // A linear congruence (Knuth, TAOCP 2, 3.3.4): any sequence does that comes by all characters.
  size_t next() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(random_ >> 33);
  }

  const std::shared_ptr<const CompiledGrammar> grammar_;
  const double end_s_;
  const std::atomic<bool>& stop_;
  std::unique_ptr<Matcher> matcher_;
  std::vector<uint32_t> mask_;
  std::vector<int32_t> candidates_;
  int64_t num_new_ = 0;  // masks worked out
  uint64_t random_ = 1;
};

}  // namespace

WarmUp::~WarmUp() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WarmUp::add(std::shared_ptr<const CompiledGrammar> grammar, double seconds) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() == kMaxWaiting) waiting_.pop_front();
    waiting_.push_back({std::move(grammar), seconds});
    if (!thread_.joinable() && !start()) return waiting_.clear();
  }
  changed_.notify_all();
}

bool WarmUp::start() {
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

void WarmUp::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !is_walking_; });
}

void WarmUp::work() {
  constexpr int kMaxInVain = 2;  // walks that found nothing
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, 0, kNice);  // of this thread alone on Linux; no matter if it fails
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    is_walking_ = true;
    lock.unlock();
    {
      Walk walk(std::move(job.grammar), job.seconds, stop_);
      for (int in_vain = 0; in_vain < kMaxInVain && !walk.is_over();) {
        in_vain = walk.run() ? 0 : in_vain + 1;
      }
    }
    lock.lock();
    is_walking_ = false;
    changed_.notify_all();
  }
}

}  // namespace fathom::grammar
