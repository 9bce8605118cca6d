// check_vectors FILE...: runs recorded vectors of the codec on this library.
//
// A vector passes if the result equals the recorded one, or an error has the recorded kind and text
// (of kind "parse" the kind alone).  A vector marked `fault` records what users must not get: it
// passes if the call ends in an orderly way and the kind of the fault has a test with the right
// value.  Other deliberate differences are listed in differences.txt, each with the kind of fault
// that is its reason.  The last line is "N passed, N failed"; the exit code is 1 if any failed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "check_vectors/compare.h"
#include "check_vectors/known_faults.h"
#include "check_vectors/ops.h"
#include "check_vectors/vector_file.h"

namespace fathom::check_vectors {
namespace {

struct Settings {
  std::vector<std::string> files;
  std::string tokenizer_dir = FATHOM_BINARY_DIR "/tokenizer_files";
  std::string differences = FATHOM_SOURCE_DIR "/tools/check_vectors/differences.txt";
  std::string tests = FATHOM_SOURCE_DIR "/tests/codec";
  std::string only;  // part of a vector's name
  bool list = false;
};

struct Counts {
  int passed = 0;
  int failed = 0;
  int faults = 0;
  int differences = 0;
};

const Op* find_op(std::string_view name) {
  for (const auto table : {request_ops(), output_ops(), json_ops(), image_ops(), tokenizer_ops()}) {
    for (const Op& op : table) {
      if (op.name == name) return &op;
    }
  }
  return nullptr;
}

// Empty if `actual` is what the vector says.
std::string mismatch(const Vector& vector, const Op& op, const Outcome& actual) {
  if (vector.ok != actual.ok) {
    return actual.ok ? "expected an error of kind " + vector.error_kind + ": " + vector.error_detail
                     : "got an error of kind " + actual.error_kind + ": " + actual.error_detail;
  }
  if (actual.ok) {
    codec::JsonValue expected = vector.result;
    codec::JsonValue given = actual.result;
    if (op.normalize != nullptr) {
      op.normalize(&expected);
      op.normalize(&given);
    }
    return difference(expected, given);
  }
  if (vector.error_kind != actual.error_kind) {
    return "expected an error of kind " + vector.error_kind + ", got " + actual.error_kind + ": " +
           actual.error_detail;
  }
  const bool is_same =
      vector.error_detail == actual.error_detail || vector.error_kind == "parse" ||
      (op.same_detail != nullptr && op.same_detail(vector.error_detail, actual.error_detail));
  if (is_same) return "";
  return "expected the error \"" + vector.error_detail + "\", got \"" + actual.error_detail + "\"";
}

class Checker {
 public:
  Checker(const Settings& settings, std::set<std::string> tested,
          std::map<std::string, std::string> differences)
      : settings_(settings),
        tested_(std::move(tested)),
        differences_(std::move(differences)),
        context_(settings.tokenizer_dir) {}

  Status check_file(const std::string& file) {
    FATHOM_ASSIGN(const std::vector<Vector> vectors, read_vectors(file));
    const std::string short_name = std::filesystem::path(file).filename().string();
    Counts counts;
    for (const Vector& vector : vectors) {
      if (!settings_.only.empty() && vector.name.find(settings_.only) == std::string::npos)
        continue;
      check(short_name, vector, &counts);
    }
    std::printf("%s: %d passed (%d faults of the package, %d listed differences), %d failed\n",
                short_name.c_str(), counts.passed, counts.faults, counts.differences,
                counts.failed);
    passed_ += counts.passed;
    failed_ += counts.failed;
    return Status();
  }

  bool finish() const {
    std::printf("%d passed, %d failed\n", passed_, failed_);
    return failed_ == 0;
  }

 private:
  void check(const std::string& file, const Vector& vector, Counts* counts) {
    const Op* op = find_op(vector.op);
    if (op == nullptr) return fail(file, vector, "no such op: " + vector.op, counts);
    const std::string what = mismatch(vector, *op, op->run(vector.fields, context_));
    const auto listed = differences_.find(file + "\t" + vector.name);
    const std::string kind = !vector.fault.empty()          ? vector.fault
                             : listed != differences_.end() ? listed->second
                                                            : "";
    if (kind.empty()) {
      if (!what.empty()) return fail(file, vector, what, counts);
      ++counts->passed;
      return;
    }
    if (!is_tested(tested_, kind)) {
      return fail(file, vector, "the kind " + kind + " has no test of its own", counts);
    }
    if (vector.fault.empty() && what.empty()) {
      return fail(file, vector, "is listed as a difference, but there is none", counts);
    }
    if (settings_.list && !what.empty()) {
      std::printf("%s: %s: differs (%s): %s\n", file.c_str(), vector.name.c_str(), kind.c_str(),
                  what.c_str());
    }
    ++counts->passed;
    ++(vector.fault.empty() ? counts->differences : counts->faults);
  }

  void fail(const std::string& file, const Vector& vector, const std::string& what,
            Counts* counts) {
    ++counts->failed;
    std::printf("FAILED %s: %s (%s): %s\n", file.c_str(), vector.name.c_str(), vector.op.c_str(),
                what.c_str());
  }

  const Settings& settings_;
  std::set<std::string> tested_;
  std::map<std::string, std::string> differences_;
  Context context_;
  int passed_ = 0;
  int failed_ = 0;
};

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app("Runs recorded vectors of the codec on this library.");
  app.add_option("FILE", settings.files, "files of vectors")->required();
  app.add_option("--tokenizers", settings.tokenizer_dir,
                 "folder of tokenizer_v4.json and tokenizer_v41.json");
  app.add_option("--differences", settings.differences, "list of deliberate differences");
  app.add_option("--tests", settings.tests, "folder of the tests faults_*_test.cc");
  app.add_option("--only", settings.only, "only vectors with this in their name");
  app.add_flag("--list", settings.list, "print each deliberate difference");
  CLI11_PARSE(app, argc, argv);

  Result<std::set<std::string>> tested = tested_kinds(settings.tests);
  Result<std::map<std::string, std::string>> differences = read_differences(settings.differences);
  for (const Status& status : {tested.error(), differences.error()}) {
    if (status.ok()) continue;
    std::fprintf(stderr, "check_vectors: %s\n", status.to_string().c_str());
    return 2;
  }
  Checker checker(settings, *std::move(tested), *std::move(differences));
  for (const std::string& file : settings.files) {
    if (const Status status = checker.check_file(file); !status.ok()) {
      std::fprintf(stderr, "check_vectors: %s\n", status.to_string().c_str());
      return 2;
    }
  }
  return checker.finish() ? 0 : 1;
}

}  // namespace
}  // namespace fathom::check_vectors

int main(int argc, char** argv) { return fathom::check_vectors::run(argc, argv); }
