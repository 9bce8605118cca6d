#include "fetch/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace fathom::fetch {
namespace {

struct Ipv4Range {
  uint32_t first;
  int bits;
};

constexpr uint32_t ipv4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

constexpr std::array<Ipv4Range, 15> kIpv4NotPublic = {{
    {ipv4(0, 0, 0, 0), 8},        // this network
    {ipv4(10, 0, 0, 0), 8},       // private
    {ipv4(100, 64, 0, 0), 10},    // shared by carriers
    {ipv4(127, 0, 0, 0), 8},      // loopback
    {ipv4(169, 254, 0, 0), 16},   // link-local
    {ipv4(172, 16, 0, 0), 12},    // private
    {ipv4(192, 0, 0, 0), 24},     // protocol assignments
    {ipv4(192, 0, 2, 0), 24},     // documentation
    {ipv4(192, 88, 99, 0), 24},   // 6to4 relays
    {ipv4(192, 168, 0, 0), 16},   // private
    {ipv4(198, 18, 0, 0), 15},    // benchmarks
    {ipv4(198, 51, 100, 0), 24},  // documentation
    {ipv4(203, 0, 113, 0), 24},   // documentation
    {ipv4(224, 0, 0, 0), 4},      // multicast
    {ipv4(240, 0, 0, 0), 4},      // reserved, broadcast
}};

struct Ipv6Range {
  std::array<uint8_t, 6> first;
  int bits;
};

// Within 2000::/3, outside of which nothing is public.
constexpr std::array<Ipv6Range, 4> kIpv6NotPublic = {{
    {{0x20, 0x01, 0x00, 0x00, 0, 0}, 23},  // protocol assignments: tunnels, benchmarks, ORCHID
    {{0x20, 0x01, 0x0d, 0xb8, 0, 0}, 32},  // documentation
    {{0x20, 0x02, 0x00, 0x00, 0, 0}, 16},  // 6to4: carries an IPv4 address
    {{0x3f, 0xff, 0x00, 0x00, 0, 0}, 20},  // documentation
}};

bool is_public(uint32_t address) {
  for (const Ipv4Range& range : kIpv4NotPublic) {
    if ((address ^ range.first) >> (32 - range.bits) == 0) return false;
  }
  return true;
}

bool has_prefix(const uint8_t* address, const Ipv6Range& range) {
  for (int i = 0; i < range.bits; ++i) {
    const int difference = address[i / 8] ^ range.first[static_cast<size_t>(i / 8)];
    if ((difference >> (7 - i % 8) & 1) != 0) return false;
  }
  return true;
}

bool is_public(const in6_addr& address) {
  if (address.s6_addr[0] >> 5 != 1) return false;
  for (const Ipv6Range& range : kIpv6NotPublic) {
    if (has_prefix(address.s6_addr, range)) return false;
  }
  return true;
}

}  // namespace

bool is_public_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    return is_public(ntohl(in.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof in);
  return is_public(in.sin6_addr);
}

bool is_public_address(const std::string& text) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, text.c_str(), &four) == 1) return is_public(ntohl(four.s_addr));
  return inet_pton(AF_INET6, text.c_str(), &six) == 1 && is_public(six);
}

}  // namespace fathom::fetch
