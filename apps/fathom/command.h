// A command of the program and its options, over CLI11.  Only command.cc includes its headers: they
// cost a compiler six seconds in every file.
//
// Commands and options are handles; what they name lives as long as the CommandLine.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fathom::app {

// Wrong use, as "NAME: what"; thrown inside setters and callbacks, caught by CommandLine::parse.
class UsageError : public std::runtime_error {
 public:
  UsageError(const std::string& name, const std::string& what)
      : std::runtime_error(name + ": " + what), name_(name) {}
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

using Setter = std::function<void(const std::string&)>;

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  // Wrong use to give this one without `other`.
  void needs(Option other) const;
  // Wrong use to leave it out.
  void require() const;
  // The value if the command line has none.
  void read_environment(const std::string& variable) const;

  bool is_given() const;
  bool is_argument() const;  // has no name with dashes
  bool has_environment() const;
  bool is_flag() const;
  std::string name() const;

 private:
  CLI::Option* option_;
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // `footer` stands below the options in its help.
  Command add_command(const std::string& name, const std::string& text,
                      const std::string& footer) const;
  // Called when the command is wanted and its options are set.
  void on_use(const std::function<void()>& use) const;

  // An option whose value `set` parses, or throws UsageError.  Given again, the last one counts.
  Option add(const std::string& name, const std::string& value_name, const std::string& text,
             const Setter& set) const;
  // An option that may be given several times; `set` is called for each value.
  Option add_repeated(const std::string& name, const std::string& value_name,
                      const std::string& text, const Setter& set) const;
  // Its value is one of `choices`.
  Option add_choice(const std::string& name, std::string* out,
                    const std::vector<std::string>& choices, const std::string& text) const;
  Option add_flag(const std::string& name, bool* out, const std::string& text) const;
  Option add_flag(const std::string& name, const std::function<void()>& set,
                  const std::string& text) const;
  // Words of the command line that belong to no option: one, or all that are left.
  Option add_argument(const std::string& name, const std::string& text, const Setter& set) const;
  Option add_arguments(const std::string& name, std::vector<std::string>* out,
                       const std::string& text) const;

  std::vector<Option> options() const;

 private:
  friend class CommandLine;
  CLI::App* app_;
};

// One whole command line.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& text, const std::string& version,
              const std::string& footer);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command root() const { return root_; }
  std::string help() const;

  // Options of the TOML file as arguments of `command`, to stand before those of the command line,
  // which so win.  UsageError: no such file, no TOML, an option that the command does not have or
  // that is one of `not_in_files`.
  std::vector<std::string> read_config(const std::string& command, const std::string& file,
                                       const std::vector<std::string>& not_in_files) const;

  struct Parsed {};
  struct Wanted {  // --help, --version
    std::string text;
  };
  struct Wrong {
    std::string what;
  };
  // Sets what the options set and calls the command's on_use.
  std::variant<Parsed, Wanted, Wrong> parse(std::vector<std::string> arguments);

 private:
  CLI::App* app_;
  Command root_;
};

}  // namespace fathom::app
