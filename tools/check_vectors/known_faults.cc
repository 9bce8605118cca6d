#include "check_vectors/known_faults.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <sstream>

namespace fathom::check_vectors {

namespace {

std::string flattened(std::string name) {
  std::erase(name, '_');
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

Result<std::set<std::string>> tested_kinds(const std::filesystem::path& dir) {
  std::error_code error;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("faults_") || !file.ends_with("_test.cc")) continue;
    std::ifstream stream(entry.path());
    static const std::regex kTest(R"(^TEST(?:_F|_P)?\(\w+,\s*(\w+))");
    for (std::string line; std::getline(stream, line);) {
      std::smatch match;
      if (std::regex_search(line, match, kTest)) names.insert(flattened(match[1]));
    }
  }
  if (error) return Status(StatusCode::kNotFound, dir.string() + ": " + error.message());
  return names;
}

bool is_tested(const std::set<std::string>& tested, const std::string& kind) {
  const std::string wanted = flattened(kind);
  const auto found = tested.lower_bound(wanted);
  return found != tested.end() && found->starts_with(wanted);
}

Result<std::map<std::string, std::string>> read_differences(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) return Status(StatusCode::kNotFound, file.string() + ": cannot be read");
  std::map<std::string, std::string> differences;
  size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const size_t first = line.find('\t');
    const size_t second = first == std::string::npos ? first : line.find('\t', first + 1);
    if (second == std::string::npos) {
      return Status(StatusCode::kDataLoss, file.string() + ":" + std::to_string(number) +
                                               ": not FILE, tab, NAME, tab, KIND");
    }
    differences[line.substr(0, second)] = line.substr(second + 1);
  }
  return differences;
}

}  // namespace fathom::check_vectors
