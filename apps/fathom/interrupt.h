// Ctrl-C and closed pipes.
//
// SIGINT and SIGTERM only count; whoever runs a loop looks at interrupted() between steps.  System
// calls that wait are cut short (no SA_RESTART).  SIGPIPE is ignored: writing says EPIPE instead.
#pragma once

namespace fathom::app {

// To be called once, first thing in main.
void catch_signals();

// A signal came since the last clear_interrupt().
bool interrupted();
void clear_interrupt();

}  // namespace fathom::app
