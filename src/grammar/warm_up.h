// Works out masks before anyone waits for them: a walk through a new grammar's texts, character by
// character, on the thread that compiled it.
//
// A mask of a state that no answer was in yet takes up to 10 ms (wide classes with a length,
// [^\n]{1,200}, at 129,280 words), and then costs time of some step.  The states behind whole
// tokens are those behind their characters, so a walk in small steps comes by most of them.
//
// Private to this folder.  Thread: any.
#pragma once

#include <memory>

#include "grammar/compiled_grammar.h"

namespace fathom::grammar {

// Ends after `seconds`, when half of the room for masks is full, or when it finds nothing new.
// Which masks are there then changes no answer, only its time.
void warm_up(const std::shared_ptr<const CompiledGrammar>& grammar, double seconds);

}  // namespace fathom::grammar
