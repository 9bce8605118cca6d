#include "grammar/grammar_store.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "grammar/compilers.h"
#include "grammar/limits.h"

namespace fathom::grammar {
namespace {

// Everything that makes a difference, with lengths, so that no two constraints have one key.
std::string key_of(const Constraint& c) {
  std::string key;
  const auto add = [&key](std::string_view text) {
    key += std::to_string(text.size()) + ':';
    key += text;
  };
  add(std::to_string(static_cast<int>(c.kind)) + (c.tool_calls.required ? "r" : "-") +
      (c.tool_calls.opened ? "o" : "-") + (c.tool_calls.v4_tags ? "4" : "-") +
      std::to_string(c.starts_after));
  add(c.text);
  add(c.begun);
  add(c.tool_calls.answer_schema);
  for (const std::string& choice : c.choices) add(choice);
  return key;
}

}  // namespace

struct GrammarStore::Entry {
  std::optional<Result<std::shared_ptr<const StoredGrammar>>> result;  // none: being compiled
  std::list<std::string>::iterator place;
};

GrammarStore::GrammarStore(Tokens tokens, int32_t vocab_size, int32_t end_token,
                           const GrammarStoreOptions& options)
    : tokens_(std::move(tokens)),
      vocab_size_(vocab_size),
      end_token_(end_token),
      options_(options) {}

GrammarStore::~GrammarStore() = default;

Result<std::shared_ptr<const StoredGrammar>> GrammarStore::acquire(const Constraint& constraint) {
  // Before anything is remembered: a text that is far too long is no key.
  if (constraint.text.size() > size_t{1} << 20 || constraint.begun.size() > size_t{1} << 20 ||
      constraint.choices.size() > size_t{1} << 16) {
    return check_constraint(constraint);
  }
  std::string key = key_of(constraint);
  std::shared_ptr<Entry> entry;
  GrammarId id = 0;
  {
    std::unique_lock lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      entry = found->second;
      order_.splice(order_.begin(), order_, entry->place);
      ++stats_.hits;
      compiled_.wait(lock, [&] { return entry->result.has_value(); });
      return *entry->result;
    }
    ++stats_.misses;
    entry = std::make_shared<Entry>();
    entry->place = order_.insert(order_.begin(), key);
    entries_.emplace(std::move(key), entry);
    id = next_id_++;
  }
  const auto start = std::chrono::steady_clock::now();
  Result<std::shared_ptr<const StoredGrammar>> result = compile(constraint, id);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  {
    const std::lock_guard lock(mutex_);
    stats_.compile_s += took.count();
    if (result) {
      by_id_[id] = *result;
      ++stats_.kept;
    } else {
      ++stats_.refused;
    }
    entry->result = result;
    trim();
  }
  compiled_.notify_all();
  return result;
}

Result<std::shared_ptr<const StoredGrammar>> GrammarStore::compile(const Constraint& constraint,
                                                                   GrammarId id) {
  // What is refused without a compile need not wait for others.
  FATHOM_TRY(check_constraint(constraint));
  if (!constraint.begun.empty()) {
    Constraint whole = constraint;
    whole.begun.clear();
    FATHOM_ASSIGN(const std::shared_ptr<const StoredGrammar> stored, acquire(whole));
    FATHOM_ASSIGN(auto rest, CompiledGrammar::continue_from(*stored->grammar, constraint.begun));
    return std::make_shared<const StoredGrammar>(StoredGrammar{id, std::move(rest)});
  }
  FATHOM_ASSIGN(std::unique_ptr<Compilers> compilers, take_compilers());
  auto grammar = CompiledGrammar::compile(constraint, vocabulary_, *compilers);
  give_back(std::move(compilers));
  if (!grammar) return std::move(grammar).error();
  warm_up_.add(*grammar);
  return std::make_shared<const StoredGrammar>(StoredGrammar{id, std::move(grammar).value()});
}

// Waits while all are in use.
Result<std::unique_ptr<Compilers>> GrammarStore::take_compilers() {
  std::unique_lock lock(compile_mutex_);
  if (vocabulary_ == nullptr) {
    FATHOM_ASSIGN(vocabulary_, Vocabulary::create(tokens_(), vocab_size_, end_token_));
  }
  idle_changed_.wait(lock,
                     [this] { return !idle_.empty() || num_compilers_ < options_.max_compiles; });
  if (idle_.empty()) {
    FATHOM_ASSIGN(std::unique_ptr<Compilers> made, Compilers::create(*vocabulary_));
    ++num_compilers_;
    return made;
  }
  std::unique_ptr<Compilers> taken = std::move(idle_.back());
  idle_.pop_back();
  return taken;
}

void GrammarStore::give_back(std::unique_ptr<Compilers> compilers) {
  {
    const std::lock_guard lock(compile_mutex_);
    idle_.push_back(std::move(compilers));
  }
  idle_changed_.notify_one();
}

std::shared_ptr<const StoredGrammar> GrammarStore::find(GrammarId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.lock();
}

// Lets go of the entries that were used longest ago.  Those in use live on with their users.
void GrammarStore::trim() {
  int64_t refused = 0;
  stats_.kept_bytes = 0;  // grammars grow by the masks that they remember
  for (auto key = order_.begin(); key != order_.end();) {
    const auto found = entries_.find(*key);
    Entry& entry = *found->second;
    const bool is_done = entry.result.has_value();
    const bool is_error = is_done && !entry.result->has_value();
    refused += is_error ? 1 : 0;
    if (is_done && !is_error) stats_.kept_bytes += (**entry.result)->grammar->memory_bytes();
    ++key;
    if (is_error && refused > options_.max_refused) {
      order_.erase(entry.place);
      entries_.erase(found);
    }
  }
  for (auto key = order_.end(); key != order_.begin() && stats_.kept_bytes > options_.max_bytes;) {
    --key;
    const auto found = entries_.find(*key);
    const auto& result = found->second->result;
    if (!result || !result->has_value()) continue;
    --stats_.kept;
    stats_.kept_bytes -= (**result)->grammar->memory_bytes();
    key = order_.erase(found->second->place);
    entries_.erase(found);
  }
  std::erase_if(by_id_, [](const auto& item) { return item.second.expired(); });
}

void GrammarStore::wait_for_masks() { warm_up_.wait(); }

GrammarStoreStats GrammarStore::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace fathom::grammar
