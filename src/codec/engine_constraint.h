// From what a request asks of the answer's form to what the engine holds it to.
//
// Thread: any; pure functions.
#pragma once

#include <string>
#include <vector>

#include "codec/conversation.h"
#include "codec/tokenizer.h"
#include "fathom/constraint.h"
#include "fathom/status.h"

namespace fathom::codec {

// Kind kNone if the answer is free: no response format, and no tools that must be called or are
// strict. With thinking the constraint begins after </think>.  Both a response format and tools: an
// answer is one or the other.  A format holds for a prefix and what is written behind it together.
// The settled `request` counts, not what it said before (thinking,
// tools, prefix).
//
// Errors (kInvalidArgument): a regex as response format beside tools; kFailedPrecondition:
// thinking, but the tokenizer has no </think>.
Result<Constraint> engine_constraint(const ConversationRequest& request,
                                     const Tokenizer& tokenizer);

// The answer begins with reasoning: thinking, and no answer to go on with.
bool begins_thinking(const Conversation& conversation);

// The text of an answer to go on with (a prefix, behind its reasoning); "": none.
std::string begun_answer(const Conversation& conversation);

// The bytes of each token that an answer under a constraint may have; empty for control tokens and
// all other added tokens but ｜DSML｜, which is part of tool calls.
std::vector<std::string> constraint_tokens(const Tokenizer& tokenizer);

}  // namespace fathom::codec
