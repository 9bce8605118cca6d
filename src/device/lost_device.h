// Whether this process has lost a device: after some faults of a GPU (a kernel that died, an
// uncorrectable error of its memory, a GPU that fell off the bus) every later call of its runtime
// in the process fails, whoever makes it. Only a new process helps.
//
// Thread: any.
#pragma once

namespace fathom {

bool has_lost_device();
// By whoever sees such a fault; there is no way back.
void note_lost_device();

}  // namespace fathom
