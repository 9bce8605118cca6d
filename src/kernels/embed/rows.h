// The implementations of kernels/embed; table.cc lists them.
#pragma once

#include "kernels/embed/embed.h"

namespace fathom::kernels {

void embed_reference(const EmbedArgs& args);
void embed_plain(const EmbedArgs& args);

}  // namespace fathom::kernels
