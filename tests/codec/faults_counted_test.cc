// Every kind of fault that docs/spec/recipe.md 7.3 names has a test with the right value: one in
// faults_*_test.cc whose name begins with the kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

namespace fathom::codec {
namespace {

std::string read_file(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern, std::regex::multiline);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.push_back((*it)[1]);
  }
  return found;
}

// "utf8_tail", "Utf8TailIsCountedAndShown" -> "utf8tail", ...
std::string flattened(std::string name) {
  std::erase(name, '_');
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

TEST(FaultKinds, EachHasATest) {
  const std::filesystem::path root = FATHOM_SOURCE_DIR;
  std::string section = read_file(root / "docs/spec/recipe.md");
  section.erase(0, section.find("### 7.3 "));
  section.erase(section.find("\n## 8."));
  const std::vector<std::string> kinds = matches(section, R"(^\| `(\w+)` \|)");
  EXPECT_EQ(kinds.size(), 65u);

  std::vector<std::string> tests;
  for (const auto& entry : std::filesystem::directory_iterator(root / "tests/codec")) {
    if (!entry.path().filename().string().starts_with("faults_")) continue;
    for (const std::string& name :
         matches(read_file(entry.path()), R"(^TEST(?:_F)?\(\w+, (\w+)\))")) {
      tests.push_back(flattened(name));
    }
  }
  for (const std::string& kind : kinds) {
    EXPECT_TRUE(std::any_of(tests.begin(), tests.end(), [&](const auto& test) {
      return test.starts_with(flattened(kind));
    })) << kind;
  }
}

}  // namespace
}  // namespace fathom::codec
