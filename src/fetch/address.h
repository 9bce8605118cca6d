// Which addresses belong to the public internet.
//
// Thread: any; pure functions.
#pragma once

#include <string>

struct sockaddr;

namespace fathom::fetch {

// False for all that could lead into the operator's own network or to nobody: loopback, private,
// link-local (metadata services of clouds), shared, multicast, reserved and documentation ranges of
// IPv4 and IPv6 (the IANA special-purpose registries), and IPv6 forms that carry an IPv4 address
// (mapped, translated, tunnels), whatever that is.
bool is_public_address(const sockaddr& address);

// The same of a text such as "10.0.0.1" or "fe80::1"; false also if it is no address.
bool is_public_address(const std::string& text);

}  // namespace fathom::fetch
