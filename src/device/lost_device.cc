#include "device/lost_device.h"

#include <atomic>

namespace fathom {
namespace {

// The process's, as the fault is.
std::atomic<bool> lost{false};

}  // namespace

bool has_lost_device() { return lost.load(); }
void note_lost_device() { lost.store(true); }

}  // namespace fathom
