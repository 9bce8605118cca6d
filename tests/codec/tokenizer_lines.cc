// Drives the tokenizer from another process (tools/tokenizer_peer.py).
//
//   tokenizer_lines FILE             reads lines from stdin, writes one line for each:
//     A HEX       ids of the UTF-8 text, added tokens recognized
//     P HEX       ids of the text without added tokens
//     D ID...     text of the ids in hex;  S ID...: without special tokens
//     E VOCAB PAD CLASSES          Engram classes of all ids, or "error: MESSAGE"
//   tokenizer_lines FILE TEXT N      encodes the file TEXT N times; writes bytes, tokens and the
//                                    seconds of processor time of each run
#include <charconv>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "codec/engram_classes.h"
#include "codec/tokenizer.h"

namespace fathom::codec {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    bytes.push_back(static_cast<char>(value));
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(byte) >> 4]);
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(byte) & 15]);
  }
  return hex;
}

void answer(const Tokenizer& tokenizer, const std::string& line) {
  const char command = line.empty() ? ' ' : line[0];
  const std::string rest = line.size() > 2 ? line.substr(2) : "";
  if (command == 'A' || command == 'P') {
    for (const int32_t id : tokenizer.encode(from_hex(rest), command == 'A'))
      std::cout << id << ' ';
  } else if (command == 'E') {
    std::istringstream numbers(rest);
    int32_t vocab_size = 0, pad = 0, num_classes = 0;
    numbers >> vocab_size >> pad >> num_classes;
    const auto classes = engram_classes(tokenizer, vocab_size, pad, num_classes);
    if (!classes) std::cout << "error: " << classes.error().message();
    if (classes) {
      for (const int32_t c : *classes) std::cout << c << ' ';
    }
  } else {
    std::istringstream numbers(rest);
    const std::vector<int32_t> ids{std::istream_iterator<int32_t>(numbers), {}};
    std::cout << to_hex(tokenizer.decode(ids, command == 'S'));
  }
  std::cout << '\n';
}

void measure(const Tokenizer& tokenizer, const char* file, int runs) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  for (int i = 0; i < runs; ++i) {
    const std::clock_t start = std::clock();
    const size_t num_tokens = tokenizer.encode(text, true).size();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::cout << text.size() << ' ' << num_tokens << ' ' << seconds << '\n';
  }
}

int run(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::cerr << "usage: tokenizer_lines TOKENIZER_JSON [TEXT RUNS]\n";
    return 2;
  }
  const auto tokenizer = Tokenizer::load(argv[1]);
  if (!tokenizer) {
    std::cerr << tokenizer.error().to_string() << '\n';
    return 1;
  }
  if (argc == 4) {
    measure(**tokenizer, argv[2], std::atoi(argv[3]));
    return 0;
  }
  for (std::string line; std::getline(std::cin, line);) answer(**tokenizer, line);
  return 0;
}

}  // namespace
}  // namespace fathom::codec

int main(int argc, char** argv) { return fathom::codec::run(argc, argv); }
