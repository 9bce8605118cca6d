// Works out masks before anyone waits for them: a walk through a new grammar's texts, character by
// character, while its first answer begins.
//
// A mask of a state that no answer was in yet takes up to 10 ms (wide classes with a length,
// [^\n]{1,200}, at 129,280 words), and then costs time of some step.
//
// Private to this folder.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "grammar/compiled_grammar.h"

namespace fathom::grammar {

// Walks through one grammar after the other on a thread of its own, which has a low priority: steps
// come first.  Which masks are there then changes no answer, only its time.
//
// Thread: any.
class WarmUp {
 public:
  WarmUp() = default;
  ~WarmUp();  // ends the walk under way

  // A walk of at most kMaxWarmUpSeconds of processor time, which ends earlier when a quarter of the
  // room for masks is full or all states are known.  Of more than a few grammars that wait the
  // oldest is forgotten, and so are those that nobody else has any more.
  void add(std::shared_ptr<const CompiledGrammar> grammar);
  // Returns when all walks are over.
  void wait();

 private:
  bool start();  // false: the system has no more threads; masks are then worked out when needed
  void work();

  std::mutex mutex_;  // guards what follows, but for the reads of stop_
  std::condition_variable changed_;
  std::deque<std::weak_ptr<const CompiledGrammar>> waiting_;
  bool is_walking_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // from the first add() on
};

}  // namespace fathom::grammar
