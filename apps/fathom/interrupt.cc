#include "interrupt.h"

#include <poll.h>
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

extern "C" void end_process(int) { _exit(130); }

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = count_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

void end_at_signals() {
  struct sigaction action {};
  action.sa_handler = end_process;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (interrupted()) _exit(130);  // came before
}

bool interrupted() { return g_signals > 0; }

bool wait_readable(int fd) {
  sigset_t signals, before;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  bool ready = false;
  while (!interrupted() && !ready) {
    pollfd input{fd, POLLIN, 0};
    ready = ppoll(&input, 1, nullptr, &before) > 0;  // signals come only in here
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ready && !interrupted();
}

NoSignalsForNewThreads::NoSignalsForNewThreads() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

NoSignalsForNewThreads::~NoSignalsForNewThreads() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void clear_interrupt() { g_signals = 0; }

}  // namespace fathom::app
