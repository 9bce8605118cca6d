#include "grammar/regex.h"

#include <algorithm>
#include <cstdio>

#include "grammar/limits.h"
#include "grammar/regex_parser.h"
#include "grammar/regex_sets.h"

namespace fathom::grammar {
namespace {

using Kind = RegexNode::Kind;

Status refuse(std::string why) { return Status(StatusCode::kInvalidArgument, std::move(why)); }

bool is_anchor(const RegexNode& node) {
  return node.kind == Kind::kBegin || node.kind == Kind::kEnd;
}

// Takes anchors away that a match of the whole text fulfils anyway; false: one stands within.
bool strip_anchors(RegexNode* node, bool at_begin, bool at_end) {
  switch (node->kind) {
    case Kind::kBegin:
      node->kind = Kind::kEmpty;
      return at_begin;
    case Kind::kEnd:
      node->kind = Kind::kEmpty;
      return at_end;
    case Kind::kAlt:
      return std::all_of(node->kids.begin(), node->kids.end(),
                         [&](RegexNode& kid) { return strip_anchors(&kid, at_begin, at_end); });
    case Kind::kRepeat:
      return strip_anchors(&node->kids.front(), false, false);
    case Kind::kCat:
      break;
    default:
      return true;
  }
  std::vector<RegexNode>& kids = node->kids;
  std::vector<bool> ends(kids.size());
  bool only_anchors = at_end;
  for (size_t i = kids.size(); i-- > 0;) {
    ends[i] = only_anchors;
    only_anchors = only_anchors && is_anchor(kids[i]);
  }
  bool begins = at_begin;
  for (size_t i = 0; i < kids.size(); ++i) {
    const bool anchor = is_anchor(kids[i]);
    if (!strip_anchors(&kids[i], begins, ends[i])) return false;
    begins = begins && anchor;
  }
  return true;
}

// Keeps what the place can hold, and folds what became empty or impossible.
void restrict_to(RegexNode* node, const CodeSet& allowed) {
  for (RegexNode& kid : node->kids) restrict_to(&kid, allowed);
  const auto never = [](const RegexNode& kid) { return kid.kind == Kind::kNever; };
  switch (node->kind) {
    case Kind::kSet:
      node->set = intersection(node->set, allowed);
      if (node->set.empty()) node->kind = Kind::kNever;
      return;
    case Kind::kCat:
      if (std::any_of(node->kids.begin(), node->kids.end(), never)) {
        *node = {.kind = Kind::kNever, .set = {}, .kids = {}};
        return;
      }
      std::erase_if(node->kids, [](const RegexNode& kid) { return kid.kind == Kind::kEmpty; });
      if (node->kids.empty()) *node = {};
      break;
    case Kind::kAlt:
      std::erase_if(node->kids, never);
      if (node->kids.empty()) node->kind = Kind::kNever;
      break;
    case Kind::kRepeat:
      if (node->max == 0 || node->kids.front().kind == Kind::kEmpty ||
          (never(node->kids.front()) && node->min == 0)) {
        *node = {};
      } else if (never(node->kids.front())) {
        *node = {.kind = Kind::kNever, .set = {}, .kids = {}};
      }
      return;
    default:
      return;
  }
  if (node->kids.size() == 1) {
    RegexNode only = std::move(node->kids.front());
    *node = std::move(only);
  }
}

// The compiler loses a NUL that stands alone; in a larger class it keeps it.
bool has_lone_nul(const RegexNode& node) {
  return (node.set.size() == 1 && node.set.front().last == 0) ||
         std::any_of(node.kids.begin(), node.kids.end(), has_lone_nul);
}

int64_t times(int64_t a, int64_t b) { return std::min<int64_t>(a * b, int64_t{1} << 40); }

RegexSize size_of(const RegexNode& node) {
  if (node.kind == Kind::kSet) return {1, 1, 1};
  if (node.kind == Kind::kRepeat) {
    const RegexSize kid = size_of(node.kids.front());
    const int64_t copies = std::max<int64_t>(1, node.max < 0 ? node.min + 1 : node.max);
    return {times(kid.min, node.min),
            kid.max == 0                  ? 0
            : node.max < 0 || kid.max < 0 ? -1
                                          : times(kid.max, node.max),
            times(kid.states, copies)};
  }
  RegexSize size;
  bool first = true;
  for (const RegexNode& kid : node.kids) {
    const RegexSize one = size_of(kid);
    size.states = std::min<int64_t>(size.states + one.states, int64_t{1} << 40);
    if (node.kind == Kind::kCat) {
      size.min += one.min;
      size.max = size.max < 0 || one.max < 0 ? -1 : size.max + one.max;
    } else {
      size.min = first ? one.min : std::min(size.min, one.min);
      size.max = first ? one.max : size.max < 0 || one.max < 0 ? -1 : std::max(size.max, one.max);
    }
    first = false;
  }
  return size;
}

// The last, or each last of the alternatives, is an anchor of that kind.
bool has_anchor(const RegexNode& node, Kind anchor) {
  if (node.kind == anchor) return true;
  if (node.kids.empty()) return false;
  if (node.kind == Kind::kAlt) {
    return std::all_of(node.kids.begin(), node.kids.end(),
                       [anchor](const RegexNode& kid) { return has_anchor(kid, anchor); });
  }
  if (node.kind != Kind::kCat) return false;
  return has_anchor(anchor == Kind::kEnd ? node.kids.back() : node.kids.front(), anchor);
}

std::string code_text(uint32_t code) {
  const char c = static_cast<char>(code);
  if (code < 0x80 && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
    return std::string(1, c);
  }
  char out[16];
  std::snprintf(out, sizeof(out), "\\u{%x}", code);
  return out;
}

std::string set_text(const CodeSet& set) {
  if (set.size() == 1 && set.front().first == set.front().last) {
    // The compiler writes an escaped ^ as it is, so it must not be the first of a class.
    return set.front().first == '^' ? "\\^" : code_text(set.front().first);
  }
  std::string out, caret;
  for (const CodeRange& range : set) {
    std::string part = code_text(range.first);
    if (range.last > range.first) part += '-' + code_text(range.last);
    (range.first == '^' ? caret : out) += part;
  }
  if (out.empty())
    return "(?:\\^|[" + code_text('^' + 1) + '-' + code_text(set.front().last) + "])";
  return '[' + out + caret + ']';
}

void write(const RegexNode& node, std::string* out);

// The library's automaton of X? (and of X{0,n}) is wrong where X ends in a loop: "a(?:x[0-9]+)?"
// would match "a1".  As (?:|X) it is right.
// X{200,} would be "any number, then 200" to it, which any number of ways lead through.
void write_repeat(const RegexNode& node, std::string* out) {
  constexpr int64_t kMaxWrittenOut = 100;
  if (node.max < 0 && node.min > kMaxWrittenOut) {
    std::string part;
    write(node.kids.front(), &part);
    *out += "(?:(?:" + part + "){" + std::to_string(node.min) + "}(?:" + part + ")*)";
    return;
  }
  const bool may_be_absent = node.min == 0 && node.max >= 0;
  const int64_t min = may_be_absent ? 1 : node.min;
  *out += may_be_absent ? "(?:|(?:" : "(?:";
  write(node.kids.front(), out);
  *out += ')';
  if (node.max < 0 && min <= 1) {
    *out += min == 0 ? '*' : '+';
  } else if (node.max != 1) {
    *out += '{' + std::to_string(min);
    if (node.max != min) *out += ',' + (node.max < 0 ? "" : std::to_string(node.max));
    *out += '}';
  }
  if (may_be_absent) *out += ')';
}

void write(const RegexNode& node, std::string* out) {
  const auto write_kids = [&](const char* between) {
    *out += "(?:";
    for (size_t i = 0; i < node.kids.size(); ++i) {
      if (i > 0) *out += between;
      write(node.kids[i], out);
    }
    *out += ')';
  };
  switch (node.kind) {
    case Kind::kSet:
      *out += set_text(node.set);
      return;
    case Kind::kCat:
      write_kids("");
      return;
    case Kind::kAlt:
      write_kids("|");
      return;
    case Kind::kRepeat:
      write_repeat(node, out);
      return;
    default:
      return;
  }
}

}  // namespace

Result<Regex> Regex::parse(std::string_view pattern, RegexUse use) {
  Regex regex;
  FATHOM_ASSIGN(regex.root_, parse_regex(pattern));
  regex.open_ended_ = !has_anchor(regex.root_, Kind::kEnd);
  regex.anchored_ = has_anchor(regex.root_, Kind::kBegin);
  if (!strip_anchors(&regex.root_, true, true)) {
    return refuse("the pattern has ^ or $ within; matches are of the whole text");
  }
  restrict_to(&regex.root_, allowed(use));
  if (has_lone_nul(regex.root_)) return refuse("the pattern has a NUL, which cannot be held to");
  if (regex.size().states > kMaxRegexStates) {
    return refuse("the pattern, its repetitions written out, has more than " +
                  std::to_string(kMaxRegexStates) + " characters");
  }
  return regex;
}

RegexSize Regex::size() const { return size_of(root_); }

Status Regex::limit_length(int64_t min, int64_t max) {
  const RegexSize whole = size();
  const bool short_enough = max < 0 || (whole.max >= 0 && whole.max <= max);
  if (is_never() || (whole.min >= min && short_enough)) return Status();
  // All but one part have one length; that one repeats single characters.
  std::vector<RegexNode*> parts;
  if (root_.kind == Kind::kCat) {
    for (RegexNode& kid : root_.kids) parts.push_back(&kid);
  } else {
    parts.push_back(&root_);
  }
  RegexNode* open = nullptr;
  int64_t fixed = 0;
  for (RegexNode* part : parts) {
    const RegexSize size = size_of(*part);
    if (size.min == size.max) {
      fixed += size.min;
      continue;
    }
    if (open != nullptr || part->kind != Kind::kRepeat || part->kids.front().kind != Kind::kSet) {
      return refuse(
          "pattern with minLength or maxLength: the pattern's own lengths must lie within, or "
          "only one repetition of a single character may vary");
    }
    open = part;
  }
  if (open == nullptr) {
    root_ = {.kind = Kind::kNever, .set = {}, .kids = {}};
    return Status();
  }
  open->min = std::max(open->min, min - fixed);
  if (max >= 0) open->max = open->max < 0 ? max - fixed : std::min(open->max, max - fixed);
  if (open->max >= 0 && open->max < open->min) {
    root_ = {.kind = Kind::kNever, .set = {}, .kids = {}};
    return Status();
  }
  if (open->max == 0) restrict_to(&root_, complement({}));
  if (size().states > kMaxRegexStates) return refuse("the pattern's lengths are too large");
  return Status();
}

std::string Regex::prefix() const {
  std::string out;
  const auto add = [&out](const RegexNode& node) {
    if (node.kind != Kind::kSet || node.set.size() != 1 || node.set[0].first != node.set[0].last ||
        node.set[0].first >= 0x80) {
      return false;
    }
    out += static_cast<char>(node.set[0].first);
    return true;
  };
  if (root_.kind != Kind::kCat) {
    add(root_);
    return out;
  }
  for (const RegexNode& kid : root_.kids) {
    if (!add(kid)) break;
  }
  return out;
}

std::string Regex::canonical() const {
  std::string out;
  write(root_, &out);
  return out;
}

}  // namespace fathom::grammar
