// Works out token masks on a thread of its own while the model's forward runs.
//
// Thread: rank-0 calls; the thread (mask-0) touches the guides between start() and wait() only.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "grammar/guide.h"

namespace fathom::runner {

class MaskFiller {
 public:
  // Not asynchronous: wait() does the work itself.  The thread begins with the first guide.
  explicit MaskFiller(bool asynchronous) : asynchronous_(asynchronous) {}
  ~MaskFiller();

  // Guides whose next mask this step needs; they must live until wait().
  void add(grammar::Guide& guide) { guides_.push_back(&guide); }
  void start();
  // All masks are there; forgets the guides.
  void wait();
  // Of a step that failed: nobody touches its guides any more.
  void abandon();

 private:
  void work();
  void fill_all();

  const bool asynchronous_;
  std::vector<grammar::Guide*> guides_;  // the thread's while is_filling_
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_filling_ = false;  // under mutex_
  bool stop_ = false;        // under mutex_
  std::thread thread_;
};

}  // namespace fathom::runner
