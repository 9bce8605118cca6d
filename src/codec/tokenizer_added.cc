#include "codec/tokenizer_added.h"

#include <algorithm>

#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

// Beginning of the last character of a valid, non-empty text.
size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

uint32_t code_point_at(std::string_view text, size_t at) {
  int length = 0;
  return decode_valid_utf8(text.data() + at, &length);
}

size_t trailing_bytes(std::string_view text, const CharSet& set) {
  size_t end = text.size();
  while (end > 0) {
    const size_t at = last_character(text.substr(0, end));
    if (!set.contains(code_point_at(text, at))) break;
    end = at;
  }
  return text.size() - end;
}

size_t leading_bytes(std::string_view text, const CharSet& set) {
  size_t at = 0;
  while (at < text.size()) {
    int length = 0;
    if (!set.contains(decode_valid_utf8(text.data() + at, &length))) break;
    at += static_cast<size_t>(length);
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens)
    : word_(CharSet::word()), space_(CharSet::white_space()) {
  // The package looks for word characters by another library than its patterns, in which the two
  // joiners count as well.
  word_.add(0x200C, 0x200D);
  word_.normalize();
  for (const AddedToken& token : tokens) {
    Group& group = token.normalized ? normalized_ : raw_;
    group.tokens.push_back(token);
    group.can_begin[static_cast<unsigned char>(token.content[0])] = true;
  }
  for (Group* group : {&raw_, &normalized_}) {
    std::sort(group->tokens.begin(), group->tokens.end(),
              [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  }
}

// Narrows the sorted tokens to those that share ever more bytes with the text.
const AddedToken* AddedTokens::Group::longest_at(std::string_view text) const {
  const AddedToken* longest = nullptr;
  auto low = tokens.begin();
  auto high = tokens.end();
  for (size_t i = 0; i < text.size() && low != high; ++i) {
    const auto byte_of = [i](const AddedToken& token) {
      return i < token.content.size() ? static_cast<unsigned char>(token.content[i]) : -1;
    };
    const int byte = static_cast<unsigned char>(text[i]);
    low = std::partition_point(low, high, [&](const auto& token) { return byte_of(token) < byte; });
    high =
        std::partition_point(low, high, [&](const auto& token) { return byte_of(token) == byte; });
    // The shortest of a group with a common prefix sorts first.
    if (low != high && low->content.size() == i + 1) longest = &*low;
  }
  return longest;
}

bool AddedTokens::touches_word(std::string_view before, std::string_view after) const {
  return (!before.empty() && word_.contains(code_point_at(before, last_character(before)))) ||
         (!after.empty() && word_.contains(code_point_at(after, 0)));
}

void AddedTokens::split_by(const Group& group, std::string_view text,
                           std::vector<Segment>* out) const {
  size_t done = 0;        // what lies before is in `out`
  size_t spaces_end = 0;  // end of the last white space taken by rstrip; read only once
  for (size_t at = 0; at < text.size();) {
    while (at < text.size() && !group.can_begin[static_cast<unsigned char>(text[at])]) ++at;
    if (at == text.size()) break;
    const AddedToken* token = group.longest_at(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    at = end;
    if (token->single_word && touches_word(text.substr(0, begin), text.substr(end))) continue;
    // A token that is itself white space may lie in what the one before took.  It then counts
    // again, unless lstrip leaves nothing of it: so does the package.
    if (token->lstrip) {
      begin = std::max(begin, done);
      begin -= trailing_bytes(text.substr(done, begin - done), space_);
    }
    if (token->rstrip) {
      if (end >= spaces_end) spaces_end = end + leading_bytes(text.substr(end), space_);
      end = spaces_end;
    }
    if (done < begin) out->push_back({text.substr(done, begin - done), kText});
    if (begin < end) out->push_back({{}, token->id});
    done = end;
  }
  if (done < text.size()) out->push_back({text.substr(done), kText});
}

std::vector<AddedTokens::Segment> AddedTokens::split(std::string_view text) const {
  std::vector<Segment> by_raw;
  split_by(raw_, text, &by_raw);
  std::vector<Segment> segments;
  for (const Segment& segment : by_raw) {
    if (segment.id == kText) {
      split_by(normalized_, segment.text, &segments);
    } else {
      segments.push_back(segment);
    }
  }
  return segments;
}

}  // namespace fathom::codec
