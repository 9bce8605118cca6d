// What the command lines of several commands are made of.  Private to command_line*.cc.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "command.h"
#include "device/cpu_features.h"
#include "option_values.h"
#include "options.h"

namespace fathom::app {

// To be thrown by setters.
UsageError bad_value(const std::string& name, const std::string& value, const std::string& wanted);

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
Option add_int(Command app, const std::string& name, Out* out, Int low, Int high,
               const std::string& text) {
  return app.add(name, "N", text, [=](const std::string& value) {
    *out = static_cast<Int>(parse_int<Int>(name, value, low, high));
  });
}

Option add_float(Command app, const std::string& name, std::optional<float>* out, float low,
                 float high, const std::string& text);
Option add_text(Command app, const std::string& name, std::optional<std::string>* out,
                const std::string& value_name, const std::string& text);

void add_isa(Command app, const std::function<void(Isa)>& set);
// The options of every command that runs a model.
void add_engine(Command app, EngineOptions* out);

}  // namespace fathom::app
