#include "grammar/regex_sets.h"

#include <algorithm>

namespace fathom::grammar {

CodeSet sorted(CodeSet set) {
  std::sort(set.begin(), set.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  CodeSet out;
  for (const CodeRange& range : set) {
    if (!out.empty() && range.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

CodeSet complement(const CodeSet& set) {
  CodeSet with_surrogates = set;
  with_surrogates.push_back({0xd800, 0xdfff});
  CodeSet out;
  uint32_t next = 0;
  for (const CodeRange& range : sorted(std::move(with_surrogates))) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCode) out.push_back({next, kLastCode});
  return out;
}

CodeSet intersection(const CodeSet& a, const CodeSet& b) {
  CodeSet out;
  for (const CodeRange& x : a) {
    for (const CodeRange& y : b) {
      const uint32_t first = std::max(x.first, y.first), last = std::min(x.last, y.last);
      if (first <= last) out.push_back({first, last});
    }
  }
  return sorted(std::move(out));
}

CodeSet digits() { return {{'0', '9'}}; }
CodeSet word() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
CodeSet ascii_spaces() { return {{'\t', '\r'}, {' ', ' '}}; }
CodeSet all_spaces() {
  return {{'\t', '\r'},     {0x1c, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
          {0x1680, 0x1680}, {0x180e, 0x180e}, {0x2000, 0x200b}, {0x2028, 0x2029},
          {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
}
CodeSet line_ends() { return {{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}; }
CodeSet ascii() { return {{0, 0x7f}}; }

CodeSet allowed(RegexUse use) {
  switch (use) {
    case RegexUse::kText:
      return complement({});
    case RegexUse::kJsonString:
      return complement({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}});
    case RegexUse::kDsmlString:
      return complement({{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {'<', '<'}});
  }
  return {};
}

}  // namespace fathom::grammar
