#include "command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

namespace fathom::app {

void Option::needs(Option other) const { option_->needs(other.option_); }
void Option::require() const { option_->required(); }
void Option::read_environment(const std::string& variable) const { option_->envname(variable); }
bool Option::is_given() const { return option_->count() > 0; }
bool Option::is_argument() const { return option_->get_positional(); }
bool Option::has_environment() const { return !option_->get_envname().empty(); }
bool Option::is_flag() const { return option_->get_expected_max() == 0; }
std::string Option::name() const { return option_->get_name(); }

Command Command::add_command(const std::string& name, const std::string& text,
                             const std::string& footer) const {
  CLI::App* command = app_->add_subcommand(name, text);
  command->footer(footer);
  return Command(command);
}

void Command::on_use(const std::function<void()>& use) const { app_->callback(use); }

Option Command::add(const std::string& name, const std::string& value_name, const std::string& text,
                    const Setter& set) const {
  return Option(app_->add_option_function<std::string>(name, set, text)
                    ->type_name(value_name)
                    ->expected(1)
                    ->take_last());
}

Option Command::add_repeated(const std::string& name, const std::string& value_name,
                             const std::string& text, const Setter& set) const {
  const auto set_all = [set](const std::vector<std::string>& values) {
    for (const std::string& value : values) set(value);
  };
  return Option(app_->add_option_function<std::vector<std::string>>(name, set_all, text)
                    ->type_name(value_name)
                    ->type_size(1)
                    ->expected(1)
                    ->allow_extra_args(false)
                    ->take_all());
}

Option Command::add_choice(const std::string& name, std::string* out,
                           const std::vector<std::string>& choices, const std::string& text) const {
  return Option(app_->add_option(name, *out, text)->check(CLI::IsMember(choices)));
}

Option Command::add_flag(const std::string& name, bool* out, const std::string& text) const {
  return Option(app_->add_flag(name, *out, text));
}

Option Command::add_flag(const std::string& name, const std::function<void()>& set,
                         const std::string& text) const {
  return Option(app_->add_flag_callback(name, set, text));
}

Option Command::add_argument(const std::string& name, const std::string& text,
                             const Setter& set) const {
  return Option(app_->add_option_function<std::string>(name, set, text));
}

Option Command::add_arguments(const std::string& name, std::vector<std::string>* out,
                              const std::string& text) const {
  return Option(app_->add_option(name, *out, text));
}

std::vector<Option> Command::options() const {
  std::vector<Option> out;
  for (CLI::Option* option : app_->get_options()) out.emplace_back(option);
  return out;
}

CommandLine::CommandLine(const std::string& name, const std::string& text,
                         const std::string& version, const std::string& footer)
    : app_(new CLI::App(text, name)), root_(app_) {
  app_->set_version_flag("--version", version, "print the version");
  app_->set_help_flag("-h,--help", "print this help");
  app_->require_subcommand(0, 1);
  app_->footer(footer);
}

CommandLine::~CommandLine() { delete app_; }

std::string CommandLine::help() const { return app_->help(); }

std::vector<std::string> CommandLine::read_config(
    const std::string& command, const std::string& file,
    const std::vector<std::string>& not_in_files) const {
  const CLI::App& app = *app_->get_subcommand(command);
  std::error_code ec;
  if (std::filesystem::is_directory(file, ec)) throw UsageError(file, "is a folder, not a file");
  if (!std::filesystem::is_regular_file(file, ec)) throw UsageError(file, "there is no such file");
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_file(file);
  } catch (const CLI::ParseError& error) {
    throw UsageError(file, error.what());
  }
  std::vector<std::string> out;
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;
    if (!item.parents.empty()) {
      throw UsageError(
          file, "has a section [" + item.parents.front() + "]; all options stand on the top level");
    }
    const CLI::Option* option = app.get_option_no_throw("--" + item.name);
    if (option == nullptr || std::ranges::count(not_in_files, item.name) > 0) {
      throw UsageError(file, "unknown option " + item.name);
    }
    if (option->get_expected_max() == 0) {  // a flag
      if (item.inputs.size() != 1 || (item.inputs[0] != "true" && item.inputs[0] != "false")) {
        throw UsageError(file, item.name + " is true or false");
      }
      if (item.inputs[0] == "true") out.push_back("--" + item.name);
      continue;
    }
    // "" is how a file says that an option is not given.
    for (const std::string& value : item.inputs) {
      if (!value.empty()) out.push_back("--" + item.name + "=" + value);
    }
  }
  return out;
}

namespace {

// Where a wrong value may have come from, if not from the command line.
std::string variable_of(const CLI::App& root, const std::string& option_name) {
  for (const CLI::App* command : root.get_subcommands()) {
    const CLI::Option* option = command->get_option_no_throw(option_name);
    if (option == nullptr || option->get_envname().empty()) continue;
    if (std::getenv(option->get_envname().c_str()) == nullptr) continue;
    return " (its value where it is not given: " + option->get_envname() + ")";
  }
  return "";
}

}  // namespace

std::variant<CommandLine::Parsed, CommandLine::Wanted, CommandLine::Wrong> CommandLine::parse(
    std::vector<std::string> arguments) {
  const auto wrong = [&](const std::string& what) {
    std::string command = app_->get_name();
    for (const CLI::App* sub : app_->get_subcommands()) command += " " + sub->get_name();
    return Wrong{what + "; see " + command + " --help"};
  };
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app_->parse(std::move(arguments));
  } catch (const CLI::Success& wanted) {
    std::ostringstream text;
    app_->exit(wanted, text, text);
    return Wanted{text.str()};
  } catch (const CLI::ParseError& error) {
    return wrong(error.what());
  } catch (const UsageError& error) {
    return wrong(error.what() + variable_of(*app_, error.name()));
  }
  return Parsed{};
}

}  // namespace fathom::app
