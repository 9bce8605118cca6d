// What the command lines of all commands are made of.  Private to command_line*.cc, which alone see
// CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "device/cpu_features.h"
#include "option_values.h"
#include "options.h"

namespace fathom::app {

// For use inside of CLI11's callbacks; caught by run_command_line.
CLI::ValidationError bad_value(const std::string& name, const std::string& value,
                               const std::string& wanted);

using Setter = std::function<void(const std::string&)>;

// An option whose value `set` parses, or throws bad_value.
CLI::Option* add(CLI::App* app, const std::string& name, const std::string& value_name,
                 const std::string& text, const Setter& set);

// An option that may be given several times; `set` is called for each value.
CLI::Option* add_repeated(CLI::App* app, const std::string& name, const std::string& value_name,
                          const std::string& text, const Setter& set);

template <class Int>
Int parse_int(const std::string& name, const std::string& text, Int low, Int high) {
  const std::optional<Int> value = parse_number<Int>(text, low, high);
  if (!value) {
    throw bad_value(name, text,
                    "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *value;
}

template <class Int, class Out>
CLI::Option* add_int(CLI::App* app, const std::string& name, Out* out, Int low, Int high,
                     const std::string& text) {
  return add(app, name, "N", text, [=](const std::string& value) {
    *out = static_cast<Int>(parse_int<Int>(name, value, low, high));
  });
}

CLI::Option* add_float(CLI::App* app, const std::string& name, std::optional<float>* out, float low,
                       float high, const std::string& text);
CLI::Option* add_text(CLI::App* app, const std::string& name, std::optional<std::string>* out,
                      const std::string& value_name, const std::string& text);

void add_isa(CLI::App* app, const std::function<void(Isa)>& set);
// The options of every command that runs a model.
void add_engine(CLI::App* app, EngineOptions* out);

}  // namespace fathom::app
