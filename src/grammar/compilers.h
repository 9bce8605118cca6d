// The library's compilers.  Private to this folder.
//
// Thread: one at a time; several may work beside each other on one vocabulary.
#pragma once

#include <memory>

#include "fathom/status.h"
#include "grammar/vocabulary.h"

namespace xgrammar {
class GrammarCompiler;
}

namespace fathom::grammar {

struct Compilers {
  static Result<std::unique_ptr<Compilers>> create(const Vocabulary& vocabulary);
  ~Compilers();

  std::unique_ptr<xgrammar::GrammarCompiler> keeping;     // keeps work that grammars share
  std::unique_ptr<xgrammar::GrammarCompiler> forgetting;  // keeps nothing

 private:
  Compilers();
};

}  // namespace fathom::grammar
