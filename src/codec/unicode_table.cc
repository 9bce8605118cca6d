#include "codec/unicode_table.h"

#include <array>
#include <vector>

namespace fathom::codec {
namespace {

constexpr uint32_t kRuns[] = {
#include "codec/unicode_table.inc"
};

constexpr std::array<std::string_view, 30> kNames = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
    "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};

constexpr CodePointRange kWhiteSpace[] = {
    {0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

constexpr CodePointRange kAlphabeticSymbols[] = {
    {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

std::vector<CategoryRun> unpack_runs() {
  std::vector<CategoryRun> runs;
  runs.reserve(std::size(kRuns));
  uint32_t first = 0;
  for (const uint32_t run : kRuns) {
    const uint32_t length = run >> 5;
    runs.push_back({first, first + length - 1, static_cast<GeneralCategory>(run & 31)});
    first += length;
  }
  return runs;
}

}  // namespace

CategoryMask category_mask(std::string_view name) {
  CategoryMask mask = 0;
  for (size_t i = 0; i < kNames.size(); ++i) {
    const bool same = name == kNames[i] || (name.size() == 1 && name[0] == kNames[i][0]);
    if (same) mask |= CategoryMask{1} << i;
  }
  return mask;
}

std::span<const CategoryRun> category_runs() {
  static const std::vector<CategoryRun> runs = unpack_runs();
  return runs;
}

std::span<const CodePointRange> white_space_ranges() { return kWhiteSpace; }

std::span<const CodePointRange> alphabetic_symbol_ranges() { return kAlphabeticSymbols; }

}  // namespace fathom::codec
