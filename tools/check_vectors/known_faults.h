// Which kinds of faults of the package have a test with the right value, and which vectors differ
// on purpose.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "fathom/status.h"

namespace fathom::check_vectors {

// Kinds in the names of tests: TEST(..., TopPIgnored...) of files faults_*_test.cc below `dir`
// stands for "top_p_ignored".  The kinds come as they are spelled there, without underscores and in
// small letters: "toppignored".
Result<std::set<std::string>> tested_kinds(const std::filesystem::path& dir);
bool is_tested(const std::set<std::string>& tested, const std::string& kind);

// The list of deliberate differences: "FILE NAME" of a vector -> the kind of fault that is the
// reason.  Lines of the file: file name, tab, vector name, tab, kind.  # begins a comment.
Result<std::map<std::string, std::string>> read_differences(const std::filesystem::path& file);

}  // namespace fathom::check_vectors
