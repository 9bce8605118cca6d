#include "grammar/state_walk.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "grammar/limits.h"

namespace fathom::grammar {
namespace {

constexpr size_t kMaxLater = 4 << 20;  // tokens of all texts that wait
constexpr int kLengthOfBlank = 8;
// States of one mask may go on in different ways, which the rules that wait tell: one more of them
// than the mask depends on.
constexpr int kMore = 1;
constexpr int kEnough = 12;  // characters in a row that lead to what is known

// Of this thread on a processor.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

StateWalk::StateWalk(std::shared_ptr<const CompiledGrammar> grammar, double seconds,
                     const std::atomic<bool>& stop)
    : grammar_(std::move(grammar)),
      end_s_(thread_seconds() + seconds),
      stop_(stop),
      mask_(grammar_->vocabulary().mask_words()) {}

bool StateWalk::is_over() const {
  return stop_ || thread_seconds() >= end_s_ ||
         grammar_->masks().bytes() >= static_cast<int64_t>(kMaxMaskBytes / 4);
}

void StateWalk::run() {
  auto matcher = Matcher::create(grammar_);
  if (!matcher) return;
  matcher_ = std::move(matcher).value();
  if (visit()) go_on(0);
  while (!later_.empty()) {
    const auto first = later_.extract(later_.begin());
    for (const Place& place : first.mapped()) {
      if (is_over()) return;
      num_later_ -= place.text.size();
      if (!go_to(place.text)) continue;
      if (place.is_visited || visit()) go_on(first.key());
    }
  }
}

// Texts that follow one another mostly begin alike.
bool StateWalk::go_to(const Text& text) {
  const auto same = std::mismatch(text_.begin(), text_.end(), text.begin(), text.end());
  matcher_->rollback(static_cast<int32_t>(text_.end() - same.first));
  text_.erase(same.first, text_.end());
  for (auto token = same.second; token != text.end(); ++token) {
    if (is_over() || !matcher_->accept(*token)) return false;
    text_.push_back(*token);
  }
  return true;
}

// Works out the mask of this state, if it is not there.  False: it was visited before, or has no
// name.
bool StateWalk::visit() {
  if (!matcher_->has_mask() && (!matcher_->fill_mask(mask_).ok() || !matcher_->has_mask())) {
    return false;
  }
  return visited_.insert(matcher_->state_hash(kMore)).second;
}

bool StateWalk::is_known() {
  return matcher_->has_mask() && visited_.count(matcher_->state_hash(kMore)) > 0;
}

// From the state just visited, and the next one if there is one way, and so on.
void StateWalk::go_on(int length) {
  while (try_characters(length) == 1) {
    ++length;
    const Place next = std::move(later_[length].back());
    later_[length].pop_back();
    num_later_ -= next.text.size();
    if (!go_to(next.text)) return;
  }
}

// Returns the number of new states behind one more character that are put off.
size_t StateWalk::try_characters(int length) {
  if (!find_allowed()) return 0;
  size_t num_new = 0;
  int known_in_a_row = 0;
  for (const int32_t token : std::exchange(characters_, {})) {
    if (known_in_a_row == kEnough || is_over() || !matcher_->accept(token)) break;
    const bool is_new = visit();
    matcher_->rollback(1);
    known_in_a_row = is_new ? 0 : known_in_a_row + 1;
    if (is_new && put_off(token, length + 1, /*is_visited=*/true)) ++num_new;
  }
  for (const int32_t token : blanks_) {
    if (!matcher_->accept(token)) break;
    const bool is_old = is_known();
    matcher_->rollback(1);
    if (!is_old) put_off(token, length + kLengthOfBlank, /*is_visited=*/false);
  }
  return num_new;
}

// Of this state: one token if there is no character.
bool StateWalk::find_allowed() {
  if (!matcher_->fill_mask(mask_).ok()) return false;
  const Vocabulary& vocabulary = grammar_->vocabulary();
  const auto is_allowed = [&](int32_t token) {
    return (mask_[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
  };
  characters_.clear();
  blanks_.clear();
  std::ranges::copy_if(vocabulary.characters(), std::back_inserter(characters_), is_allowed);
  std::ranges::copy_if(vocabulary.blanks(), std::back_inserter(blanks_), is_allowed);
  for (int32_t token = 0; token < vocabulary.size() && characters_.empty() && blanks_.empty();
       ++token) {
    if (is_allowed(token) && token != vocabulary.end_token()) characters_.push_back(token);
  }
  return true;
}

// False: too many wait.
bool StateWalk::put_off(int32_t token, int length, bool is_visited) {
  if (num_later_ + text_.size() >= kMaxLater) return false;
  Place& place = later_[length].emplace_back(Place{text_, is_visited});
  place.text.push_back(token);
  num_later_ += place.text.size();
  return true;
}

}  // namespace fathom::grammar
