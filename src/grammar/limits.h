// What a constraint may ask for.  A compile cannot be stopped once it runs, so everything that
// makes it long is bounded before it begins (measured in docs/structured-output.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fathom::grammar {

inline constexpr size_t kMaxTextBytes = 256 << 10;  // schema, regex, grammar, tools
inline constexpr int kMaxDepth = 64;                // nesting of a schema, of groups
inline constexpr int64_t kMaxSchemaNodes = 8000;    // sub-schemas, after references are merged in
inline constexpr int64_t kMaxProperties = 2000;     // of one object
inline constexpr int64_t kMaxEnumValues = 2000;     // in a whole schema
inline constexpr size_t kMaxEnumBytes = 64 << 10;   // text of these values
inline constexpr int64_t kMaxTotalCount = 20000;    // all lengths, counts and names of a schema
inline constexpr int64_t kMaxCount = 2000;          // lengths, items, properties, repetitions
inline constexpr int64_t kMaxRegexStates = 4000;  // characters of a regex, repetitions written out
inline constexpr size_t kMaxRegexBytes = 16 << 10;
inline constexpr size_t kMaxGrammarBytes = 64 << 10;
inline constexpr size_t kMaxChoices = 2000;
inline constexpr size_t kMaxTools = 256;

// Steps of the parser, 10 to 100 ns each.  At 129,280 words a mask takes up to 900,000 (classes
// with a length in a repetition with one), a state of a compile 850,000, and a schema of 60 such
// fields 345 million in all; an ambiguous grammar takes any number.
inline constexpr int64_t kMaxTokenWork = 10'000'000;  // of a mask, of taking a token
inline constexpr int64_t kMaxStateWork = 20'000'000;
inline constexpr int64_t kMaxCompileWork = 1'000'000'000;

inline constexpr size_t kMaxMaskBytes = 64 << 20;  // masks that a grammar remembers
inline constexpr double kMaxWarmUpSeconds = 2;     // of masks worked out behind a compile

}  // namespace fathom::grammar
