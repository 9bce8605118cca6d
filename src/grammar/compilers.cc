#include "grammar/compilers.h"

#include <xgrammar/compiler.h>

#include "grammar/xgrammar_calls.h"

namespace fathom::grammar {
namespace {

constexpr int64_t kMaxKeptBytes = int64_t{32} << 20;

}  // namespace

Compilers::Compilers() = default;
Compilers::~Compilers() = default;

Result<std::unique_ptr<Compilers>> Compilers::create(const Vocabulary& vocabulary) {
  std::unique_ptr<Compilers> out(new Compilers);
  FATHOM_TRY(guarded("compiler", [&] {
    out->keeping = std::make_unique<xgrammar::GrammarCompiler>(
        vocabulary.info(), /*max_threads=*/1, /*cache_enabled=*/true, kMaxKeptBytes);
    out->forgetting = std::make_unique<xgrammar::GrammarCompiler>(
        vocabulary.info(), /*max_threads=*/1, /*cache_enabled=*/false);
  }));
  return out;
}

}  // namespace fathom::grammar
