// Conversations in the JSON form of the vectors.
#pragma once

#include "codec/conversation.h"
#include "codec/json_value.h"

namespace fathom::check_vectors {

codec::Conversation conversation_of(const codec::JsonValue& json);
codec::JsonValue json_of(const codec::ConversationRequest& request);
codec::JsonValue json_of(const codec::ImageSource& source);

}  // namespace fathom::check_vectors
