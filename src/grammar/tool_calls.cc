#include "grammar/tool_calls.h"

#include <algorithm>
#include <string_view>

#include "grammar/json_tree.h"
#include "grammar/limits.h"
#include "grammar/schema.h"

namespace fathom::grammar {
namespace {

// docs/spec and the prompt renderer have the same forms (codec/render/tool_text.cc).
struct Tags {
  std::string calls, invoke;
  const char* style;
};

Tags tags_of(bool v4) {
  if (v4) return {"｜DSML｜tool_calls", "｜DSML｜invoke", "deepseek_xml"};
  return {"｜DSML｜ calls", "｜DSML｜ invoke", "deepseek_v4_1_xml"};
}

Json make(std::string_view type) {
  Json out = Json::object();
  out.set("type", Json::of(std::string(type)));
  return out;
}

Json constant(std::string text) {
  Json out = make("const_string");
  out.set("value", Json::of(std::move(text)));
  return out;
}

Json list_of(std::vector<Json> items) {
  Json out = Json::array();
  out.items = std::move(items);
  return out;
}

Json sequence(std::vector<Json> parts) {
  Json out = make("sequence");
  out.set("elements", list_of(std::move(parts)));
  return out;
}

Json schema_format(Json schema, const char* style, int max_whitespace) {
  Json out = make("json_schema");
  out.set("json_schema", std::move(schema));
  out.set("style", Json::of(std::string(style)));
  out.set("max_whitespace_cnt", Json::of_number(max_whitespace));
  return out;
}

Json any_object() { return make("object"); }

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 300 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == ':' || c == '.';
  });
}

Status refuse(std::string why) { return Status(StatusCode::kInvalidArgument, std::move(why)); }

Result<Json> invoke_tag(const Json& tool, const Constraint::ToolCalls& rules, const Tags& tags,
                        int max_whitespace) {
  const Json* function = tool.find("function");
  const Json* name = function != nullptr ? function->find("name") : nullptr;
  if (name == nullptr || !name->is_string() || !is_name(name->text)) {
    return refuse("a tool needs a function with a name of letters, digits, _ - : and .");
  }
  const Json* strict_flag = function->find("strict");
  const bool strict = strict_flag != nullptr && strict_flag->is_bool(true);
  const Json* parameters = function->find("parameters");
  Json schema = any_object();
  if (parameters != nullptr && !parameters->is(Json::Kind::kNull) && (strict || rules.required)) {
    Result<Json> held = normalize_schema(*parameters, SchemaUse::kDsml);
    if (held) {
      schema = std::move(held).value();
    } else if (strict) {
      return std::move(held).error().with_context("tool " + name->text);
    }
  }
  Json tag = make("tag");
  tag.set("begin", Json::of("<" + tags.invoke + " name=\"" + name->text + "\">\n"));
  tag.set("content", schema_format(std::move(schema), tags.style, max_whitespace));
  tag.set("end", Json::of("</" + tags.invoke + ">\n"));
  return tag;
}

}  // namespace

Result<std::string> tool_call_tag(const Constraint& constraint, int max_whitespace) {
  const Constraint::ToolCalls& rules = constraint.tool_calls;
  FATHOM_ASSIGN(const Json tools, parse_json(constraint.text, "tools"));
  if (!tools.is_array() || tools.items.empty() || tools.items.size() > kMaxTools) {
    return refuse("tools must be a list of 1 to " + std::to_string(kMaxTools));
  }
  const Tags tags = tags_of(rules.v4_tags);
  Json invokes = make("tags_with_separator");
  Json list = Json::array();
  for (const Json& tool : tools.items) {
    FATHOM_ASSIGN(Json tag, invoke_tag(tool, rules, tags, max_whitespace));
    list.items.push_back(std::move(tag));
  }
  invokes.set("tags", std::move(list));
  invokes.set("separator", Json::of(std::string()));
  invokes.set("at_least_one", Json::of(true));
  invokes.set("stop_after_first", Json::of(false));

  const std::string begin = "<" + tags.calls + ">\n", end = "</" + tags.calls + ">";
  Json format;
  if (rules.required && rules.opened) {
    format = sequence({std::move(invokes), constant(end)});
  } else if (rules.required) {
    format = sequence({constant("\n\n" + begin), std::move(invokes), constant(end)});
  } else if (!rules.answer_schema.empty()) {
    FATHOM_ASSIGN(const Json schema, parse_json(rules.answer_schema, "response schema"));
    FATHOM_ASSIGN(Json answer, normalize_schema(schema, SchemaUse::kJson));
    format = make("or");
    format.set("elements",
               list_of({sequence({constant("\n\n" + begin), std::move(invokes), constant(end)}),
                        schema_format(std::move(answer), "json", max_whitespace)}));
  } else {
    Json block = make("tag");
    block.set("begin", Json::of(begin));
    block.set("content", std::move(invokes));
    block.set("end", Json::of(end));
    format = make("triggered_tags");
    format.set("triggers", list_of({Json::of("<" + tags.calls + ">")}));
    format.set("tags", list_of({std::move(block)}));
    format.set("stop_after_first", Json::of(true));
  }
  Json out = make("structural_tag");
  out.set("format", std::move(format));
  return write_json(out);
}

}  // namespace fathom::grammar
