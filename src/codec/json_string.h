// Reads the strings of a JSON text: most bytes of a request are in them, so they are taken 16 or
// 64 at a time (the idea of simdjson, Langdale and Lemire 2019, arXiv:1902.08318, sec. 3.1.5).
//
// Private to the JSON reader.  Thread: one; one object a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fathom::codec {

class JsonStringReader {
 public:
  // `text` must outlive the reader.
  explicit JsonStringReader(std::string_view text) : text_(text) {}

  // Reads the string whose first byte, behind the opening quote, is text[*at].  Null: done, and *at
  // is behind the closing quote.  Else what is wrong at text[*at].
  const char* read(size_t* at, std::string* out);

 private:
  const char* read_slow(size_t* at, size_t plain, std::string* out);
  void read_wide(const char** from, char** to) const;
  const char* read_escape(const char** p, char** to) const;
  std::optional<uint32_t> hex4(const char* p) const;

  std::string_view text_;
  std::unique_ptr<char[]> scratch_;  // as long as the text, made when it is needed
};

}  // namespace fathom::codec
