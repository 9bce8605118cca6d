#include "grammar/ebnf_check.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "grammar/limits.h"

namespace fathom::grammar {
namespace {

Status refuse(std::string why) {
  return Status(StatusCode::kInvalidArgument, "the grammar " + std::move(why));
}

// Counts atoms with repetitions written out.  Atoms of an open group are summed on a stack.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  Status run() {
    while (at_ < text_.size() && status_.ok()) step();
    return status_;
  }

 private:
  struct Group {
    int64_t sum = 0;   // of what is complete
    int64_t last = 0;  // of the last atom, which a repetition may follow
  };

  void add(int64_t atoms) {
    Group& group = groups_.back();
    group.sum += group.last;
    group.last = atoms;
    if (total_ + group.sum + group.last > kMaxTotalCount) {
      status_ = refuse("has more than " + std::to_string(kMaxTotalCount) +
                       " characters with its repetitions written out; make it smaller");
    }
  }

  void step() {
    const char c = text_[at_++];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '[' || c == '/') {
      const size_t begin = at_;
      const char end = c == '[' ? ']' : c;
      while (at_ < text_.size() && text_[at_] != end && text_[at_] != '\n')
        at_ += text_[at_] == '\\' ? 2 : 1;
      at_ = std::min(at_ + 1, text_.size());
      add(c == '[' ? 1 : static_cast<int64_t>(at_ - begin));
    } else if (c == '(') {
      groups_.emplace_back();
      if (groups_.size() > kMaxDepth) {
        status_ = refuse("nests more than " + std::to_string(kMaxDepth) + " groups");
      }
    } else if (c == ')' && groups_.size() > 1) {
      const int64_t inner = groups_.back().sum + groups_.back().last;
      groups_.pop_back();
      add(inner);
    } else if (c == '{') {
      repetition();
    } else if (text_.substr(at_ - 1).starts_with("::=")) {
      total_ += groups_.front().sum + groups_.front().last;
      groups_.assign(1, Group());
      at_ += 2;
    } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r' && c != '|') {
      while (at_ < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
        ++at_;
      if (c != '*' && c != '+' && c != '?') add(1);
    }
  }

  void repetition() {
    int64_t most = 1, number = 0;
    for (; at_ < text_.size() && text_[at_] != '}' && text_[at_] != '\n'; ++at_) {
      number = text_[at_] >= '0' && text_[at_] <= '9'
                   ? std::min<int64_t>(number * 10 + (text_[at_] - '0'), int64_t{1} << 40)
                   : 0;
      most = std::max(most, number);
    }
    if (most > kMaxCount) {
      status_ = refuse("repeats more than " + std::to_string(kMaxCount) + " times");
      return;
    }
    Group& group = groups_.back();
    const int64_t repeated = std::min<int64_t>(group.last * most, int64_t{1} << 40);
    group.last = 0;
    add(repeated);
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Group> groups_ = std::vector<Group>(1);
  int64_t total_ = 0;  // of the rules before
  Status status_;
};

}  // namespace

Status check_ebnf_size(std::string_view text) {
  if (text.size() > kMaxGrammarBytes) {
    return refuse("has " + std::to_string(text.size()) + " bytes, at most " +
                  std::to_string(kMaxGrammarBytes) + " are allowed");
  }
  return Scan(text).run();
}

}  // namespace fathom::grammar
