#include "codec/requests/responses_tools.h"

#include <algorithm>

#include "codec/json_text.h"
#include "codec/requests/request_parts.h"

namespace fathom::codec {

namespace {

constexpr std::string_view kPatch = "apply_patch";
constexpr std::string_view kPatchDescription =
#include "codec/requests/apply_patch_description.inc"
    ;
constexpr std::string_view kPatchParameters =
    R"({"type":"object","additionalProperties":false,"properties":{"input":{"type":"string",)"
    R"("description":"The entire contents of the apply_patch command (the *** Begin Patch ... )"
    R"(*** End Patch envelope)."}},"required":["input"]})";

bool is_web_search(std::string_view type) {
  return type == "web_search" || type == "web_search_2025_08_26";
}

std::string member_key(std::string_view name_space, std::string_view name) {
  return std::string(name_space) + '\0' + std::string(name);
}

Status no_server_tools() { return bad_request("Server tools are not supported"); }

// The description of a member begins with that of its namespace.
void set_member_description(const JsonValue& name_space, ToolDefinition* tool) {
  const std::string* description = string_field(name_space, "description");
  if (description == nullptr) return;
  tool->description = *description + "\n" + tool->description.value_or("");
}

}  // namespace

Status ResponsesTools::declare(const JsonArray& tools) {
  for (size_t i = 0; i < tools.size(); ++i) {
    FATHOM_TRY(declare_one(tools[i], "tools[" + std::to_string(i) + "]"));
  }
  return Status();
}

Status ResponsesTools::declare_one(const JsonValue& tool, const std::string& place) {
  const std::string_view type = text_field(tool, "type");
  if (type == "function") {
    FATHOM_TRY(check_tool_name(text_field(tool, "name"), place + ".name"));
    add(declared_tool(tool, "parameters", texts_));
  } else if (type == "namespace") {
    FATHOM_TRY(declare_namespace(tool, place));
  } else if (type == "custom") {
    FATHOM_TRY(declare_custom(tool));
  } else if (type == "tool_search" && text_field(tool, "execution") == "client" &&
             knows_tool_search()) {
    DeclaredTool search = declared_tool(tool, "parameters", texts_);
    search.tool.name = "tool_search";
    add(std::move(search));
  } else if (is_web_search(type) && !options_.drop_responses_web_search) {
    return no_server_tools();
  }
  return Status();
}

Status ResponsesTools::declare_namespace(const JsonValue& tool, const std::string& place) {
  const std::string_view name_space = text_field(tool, "name");
  FATHOM_TRY(check_tool_name(name_space, place + ".name"));
  const JsonArray& members = *list_field(tool, "tools");
  std::unordered_set<std::string_view> names;
  for (size_t j = 0; j < members.size(); ++j) {
    const std::string_view name = text_field(members[j], "name");
    const std::string member_place = place + ".tools[" + std::to_string(j) + "]";
    if (text_field(members[j], "type") == "custom") {
      return bad_request(
          "Currently custom tools are not allowed inside a namespace. Found custom tool '" +
          std::string(name) + "' in " + member_place + ".");
    }
    FATHOM_TRY(check_tool_name(name, member_place + ".name"));
    if (!names.insert(name).second) {
      return bad_request("Tool names within a namespace must be unique.");
    }
    DeclaredTool member = declared_tool(members[j], "parameters", texts_);
    member.tool.name = add_member(name_space, name);
    if (!is_v4_) set_member_description(tool, &member.tool);
    add(std::move(member));
  }
  return Status();
}

Status ResponsesTools::declare_custom(const JsonValue& tool) {
  const std::string_view name = text_field(tool, "name");
  if (name != kPatch) {
    return bad_request("Unsupported custom tool: '" + std::string(name) +
                       "'. Only 'apply_patch' is supported.");
  }
  DeclaredTool patch;
  patch.tool.name = kPatch;
  patch.tool.description = kPatchDescription;
  if (is_v4_) {
    // V4 was trained on the text without the blank line before the envelope.
    static constexpr std::string_view kBlankLine = "envelope:\n\n";
    const size_t place = patch.tool.description->find(kBlankLine);
    if (place != std::string::npos) patch.tool.description->erase(place + kBlankLine.size() - 1, 1);
  }
  Result<JsonValue> parameters = parse_json(kPatchParameters);
  if (!parameters) return std::move(parameters).error();
  patch.tool.parameters = *std::move(parameters);
  custom_.emplace_back(kPatch);
  add(std::move(patch));
  return Status();
}

void ResponsesTools::add(DeclaredTool tool) {
  names_.insert(tool.tool.name);
  declared_.push_back(std::move(tool));
}

std::string ResponsesTools::add_member(std::string_view name_space, std::string_view name) {
  const std::string base = std::string(name_space) + (is_v4_ ? "__" : "::") + std::string(name);
  std::string flat = base;
  while (!names_.insert(flat).second) flat = base + "_" + std::to_string(++next_suffix_[base]);
  flat_names_.try_emplace(member_key(name_space, name), flat);
  namespaced_.push_back({flat, std::string(name_space), std::string(name)});
  return flat;
}

std::string ResponsesTools::name_of_call(std::string_view name_space, std::string_view name) {
  if (name_space.empty()) return std::string(name);
  const auto found = flat_names_.find(member_key(name_space, name));
  return found != flat_names_.end() ? found->second : add_member(name_space, name);
}

std::vector<ToolDefinition> ResponsesTools::load(const JsonArray& tools) {
  std::vector<ToolDefinition> loaded;
  const auto take = [&](DeclaredTool tool, bool is_new) {
    tool.tool.defer_loading = true;
    loaded.push_back(tool.tool);
    if (is_new) add(std::move(tool));
  };
  for (const JsonValue& tool : tools) {
    const std::string_view type = text_field(tool, "type");
    if (type == "function") {
      take(declared_tool(tool, "parameters", texts_),
           !names_.contains(std::string(text_field(tool, "name"))));
    } else if (type == "namespace") {
      const std::string_view name_space = text_field(tool, "name");
      for (const JsonValue& member : *list_field(tool, "tools")) {
        const std::string_view name = text_field(member, "name");
        const bool is_new = !flat_names_.contains(member_key(name_space, name));
        DeclaredTool declared = declared_tool(member, "parameters", texts_);
        declared.tool.name = name_of_call(name_space, name);
        set_member_description(tool, &declared.tool);
        take(std::move(declared), is_new);
      }
    }
  }
  return loaded;
}

// A flat name, or that of a member of a namespace, which may be named as well.
void ResponsesTools::choose(const JsonValue& named, Choice* choice) const {
  const std::string_view name = text_field(named, "name");
  const std::string_view name_space = text_field(named, "namespace");
  if (name_space.empty() && names_.contains(std::string(name))) {
    choice->names.emplace_back(name);
    return;
  }
  const auto member =
      std::find_if(namespaced_.begin(), namespaced_.end(), [&](const NamespacedTool& tool) {
        return tool.name == name && (name_space.empty() || tool.name_space == name_space);
      });
  choice->names.push_back(member != namespaced_.end() ? member->flat_name : std::string(name));
}

Result<Choice> ResponsesTools::choice(const JsonValue* value) const {
  Choice out;
  if (value == nullptr) return out;
  if (const std::string* name = value->if_string()) {
    if (*name == "none") out.mode = ToolChoice::kNone;
    if (*name == "required") out.mode = ToolChoice::kRequired;
    return out;
  }
  const std::string_view type = text_field(*value, "type");
  if (is_web_search(type)) {
    if (!options_.drop_responses_web_search) return no_server_tools();
    return out;
  }
  if (type == "allowed_tools") {
    if (text_field(*value, "mode") == "required") out.mode = ToolChoice::kRequired;
    for (const JsonValue& tool : *list_field(*value, "tools")) {
      const std::string_view kind = text_field(tool, "type");
      if (kind == "function" || kind == "custom") choose(tool, &out);
    }
    if (out.names.empty()) out.mode = ToolChoice::kNone;
    return out;
  }
  out.mode = ToolChoice::kRequired;
  choose(*value, &out);
  return out;
}

}  // namespace fathom::codec
