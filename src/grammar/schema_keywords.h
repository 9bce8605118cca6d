// The keywords of JSON Schema, one row each.  Private to schema*.cc.
#pragma once

#include <string>
#include <string_view>

#include "grammar/json_tree.h"

namespace fathom::grammar {

// "at WHERE: why"
Status schema_error(std::string_view where, const std::string& why);

// The type of instances that a keyword is about.
enum class KeywordScope { kAny, kNumber, kString, kArray, kObject };

// nullptr: not about one type (type, enum, $ref, ...).
bool is_about(std::string_view keyword, KeywordScope scope);

// Every member of the object is a keyword that we handle or may ignore, with a value of the right
// type.
Status check_keywords(const Json& schema, const std::string& where);

// Title, description, ...: says nothing about values.
bool is_annotation(std::string_view keyword);

}  // namespace fathom::grammar
