#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <csignal>

namespace fathom::app {
namespace {

volatile std::sig_atomic_t g_signals = 0;

// Somebody who presses three times means it, whatever a step is doing.
extern "C" void count_signal(int) {
  g_signals = g_signals + 1;
  if (g_signals >= 3) _exit(130);
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = count_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return g_signals > 0; }
void clear_interrupt() { g_signals = 0; }

}  // namespace fathom::app
