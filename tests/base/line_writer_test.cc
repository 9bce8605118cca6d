#include "base/line_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace fathom {
namespace {

std::string dropped(int64_t count) { return "dropped " + std::to_string(count); }

struct Pipe {
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  // Until the writing end is closed.
  std::string read_all() {
    close(std::exchange(ends[1], -1));
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }
  int ends[2] = {-1, -1};
};

TEST(LineWriter, LinesOfSeveralThreadsStayWholeAndAreWrittenBeforeItEnds) {
  Pipe pipe;
  {
    LineWriter writer(pipe.ends[1], 1 << 20, dropped);
    std::vector<std::thread> threads;
    for (const char letter : {'a', 'b', 'c'}) {
      threads.emplace_back([&writer, letter] {
        for (int i = 0; i < 100; ++i) writer.write(std::string(50, letter));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const std::string text = pipe.read_all();
  EXPECT_EQ(text.size(), 300u * 51);
  for (size_t i = 0; i < text.size(); i += 51) {
    EXPECT_EQ(std::count(text.begin() + static_cast<int64_t>(i),
                         text.begin() + static_cast<int64_t>(i) + 50, text[i]),
              50);
    EXPECT_EQ(text[i + 50], '\n');
  }
}

TEST(LineWriter, AReaderThatIsStuckLosesLinesAndIsToldHowMany) {
  Pipe pipe;
  std::string text;
  std::thread reader;
  {
    LineWriter writer(pipe.ends[1], 200'000, dropped);
    // The pipe holds 64 KiB, the writer 200,000 bytes: most of 1 MB has no place.
    for (int i = 0; i < 1000; ++i) writer.write(std::string(999, 'x'));
    reader = std::thread([&] {
      char buffer[65536];
      for (ssize_t n = 0; (n = read(pipe.ends[0], buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<size_t>(n));
      }
    });
  }
  close(std::exchange(pipe.ends[1], -1));
  reader.join();
  const auto num_lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_LT(num_lines, 600);
  EXPECT_GE(num_lines, 200);
  const size_t at = text.find("dropped ");
  ASSERT_NE(at, text.npos);
  int64_t told = 0;
  for (size_t i = at; i != text.npos; i = text.find("dropped ", i + 1)) {
    told += std::stoll(text.substr(i + 8));
  }
  const auto kept = std::count(text.begin(), text.end(), 'x') / 999;
  EXPECT_EQ(told + kept, 1000);
}

TEST(LineWriter, EndsAlthoughNobodyReads) {
  Pipe pipe;
  const auto begin = std::chrono::steady_clock::now();
  {
    LineWriter writer(pipe.ends[1], 1 << 20, dropped);
    for (int i = 0; i < 500; ++i) writer.write(std::string(999, 'x'));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_GE(pipe.read_all().size(), 60'000u);
}

TEST(LineWriter, AClosedReaderIsNoFault) {
  Pipe pipe;
  close(std::exchange(pipe.ends[0], open("/dev/null", O_RDONLY)));
  const auto before = signal(SIGPIPE, SIG_IGN);
  {
    LineWriter writer(pipe.ends[1], 1000, dropped);
    writer.write("lost");
  }
  signal(SIGPIPE, before);
}

}  // namespace
}  // namespace fathom
