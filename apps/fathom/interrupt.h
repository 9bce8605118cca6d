// Ctrl-C and closed pipes.
//
// SIGINT and SIGTERM only count; whoever runs a loop looks at interrupted() between steps.  System
// calls that wait are cut short (no SA_RESTART).  SIGPIPE is ignored: writing says EPIPE instead.
#pragma once

#include <signal.h>

namespace fathom::app {

// To be called once, first thing in main.
void catch_signals();

// From now on SIGINT and SIGTERM end the process at once with exit code 130: for work without steps
// between which somebody could look, and without a result worth keeping.
void end_at_signals();

// A signal came since the last clear_interrupt().
bool interrupted();
void clear_interrupt();

// Waits until `fd` can be read.  False if a signal came since the last clear_interrupt(), however
// shortly before: a plain read would miss one that arrives just before it begins to wait.
bool wait_readable(int fd);

// While it lives, new threads are born without ctrl-C: the system hands a signal to any thread that
// takes it, and only in the main thread does it interrupt a read of the terminal.
class NoSignalsForNewThreads {
 public:
  NoSignalsForNewThreads();
  ~NoSignalsForNewThreads();
  NoSignalsForNewThreads(const NoSignalsForNewThreads&) = delete;
  NoSignalsForNewThreads& operator=(const NoSignalsForNewThreads&) = delete;

 private:
  sigset_t before_;
};

}  // namespace fathom::app
