#include "device/memory_nodes.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <fstream>
#include <limits>
#include <string>

namespace fathom {
namespace {

constexpr int kMaxNodes = 1024;
constexpr size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;
using NodeMask = std::array<unsigned long, kMaxNodes / kWordBits>;

bool set_policy(int mode, const NodeMask* mask) {
  return syscall(SYS_set_mempolicy, mode, mask == nullptr ? nullptr : mask->data(),
                 mask == nullptr ? 0 : kMaxNodes) == 0;
}

// Of this thread; < 0: the kernel does not say.
int policy() {
  int mode = -1;
  return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 ? mode : -1;
}

}  // namespace

std::vector<int> parse_number_list(std::string_view text) {
  std::vector<int> out;
  const char *at = text.data(), *const end = at + text.size();
  const auto number = [&](int* value) {
    const auto [next, error] = std::from_chars(at, end, *value);
    at = next;
    return error == std::errc() && *value >= 0 && *value < kMaxNodes;
  };
  while (at != end) {
    int first = 0, last = 0;
    if (!out.empty() && *at++ != ',') return {};
    if (!number(&first)) return {};
    last = first;
    if (at != end && *at == '-' && (++at, !number(&last))) return {};
    for (int i = first; i <= last; ++i) out.push_back(i);
  }
  return out;
}

std::vector<int> memory_nodes() {
  std::ifstream status("/proc/self/status");
  std::string key, list;
  while (status >> key) {
    if (key == "Mems_allowed_list:" && status >> list) {
      std::vector<int> nodes = parse_number_list(list);
      if (!nodes.empty()) return nodes;
    }
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return {0};
}

SpreadMemory::SpreadMemory(std::span<const int> nodes, size_t least) {
  if (nodes.size() < least || policy() != MPOL_DEFAULT) return;
  NodeMask mask{};
  for (const int node : nodes) {
    const auto bit = static_cast<size_t>(node);
    mask[bit / kWordBits] |= 1ul << bit % kWordBits;
  }
  is_on_ = set_policy(MPOL_INTERLEAVE, &mask);
}

SpreadMemory::~SpreadMemory() {
  if (is_on_) set_policy(MPOL_DEFAULT, nullptr);
}

}  // namespace fathom
