// What becomes of an exchange whose client goes.
#include "server/exchange.h"

#include <gtest/gtest.h>

#include <vector>

namespace fathom::server {
namespace {

struct Seen {
  std::vector<std::string> calls;  // in order
  bool closed = false;             // the client has gone
  int status = 0;                  // as reported
};

class RecordingResponder : public net::Responder {
 public:
  explicit RecordingResponder(Seen& seen) : seen_(seen) {}
  void send(net::HttpResponse) override { seen_.calls.push_back("send"); }
  void begin_stream(net::HttpResponse) override { seen_.calls.push_back("begin"); }
  void write(std::string text) override { seen_.calls.push_back(text); }
  void end() override { seen_.calls.push_back("end"); }
  bool closed() const override { return seen_.closed; }
  void on_close(std::function<void()>) override {}

 private:
  Seen& seen_;
};

std::unique_ptr<Exchange> exchange_of(Seen& seen) {
  return std::make_unique<Exchange>(
      net::HttpRequest(), std::make_shared<RecordingResponder>(seen), net::HttpHeaders(),
      HttpRecord(), Dialect::kOpenAi,
      Exchange::Hooks{.body_done = nullptr,
                      .release = [&seen] { seen.calls.push_back("release"); },
                      .done = [&seen](const HttpRecord& record) { seen.status = record.status; }});
}

TEST(Exchange, AClientThatGoesAfterTheEndHasHadItsAnswer) {
  Seen seen;
  auto exchange = exchange_of(seen);
  exchange->write_events("one");
  exchange->end_events("last");
  // Its place is free before it can know that the answer is whole.
  EXPECT_EQ(seen.calls, (std::vector<std::string>{"begin", "one", "release", "last", "end"}));
  seen.closed = true;
  exchange.reset();
  EXPECT_EQ(seen.status, 200);
}

TEST(Exchange, AClientThatGoesBeforeTheEndIsReportedAsGone) {
  Seen seen;
  auto exchange = exchange_of(seen);
  exchange->write_events("one");
  seen.closed = true;
  exchange->end_events("last");
  exchange.reset();
  EXPECT_EQ(seen.status, 499);
}

TEST(Exchange, OneThatNobodyAnsweredIsAnError) {
  Seen seen;
  exchange_of(seen).reset();
  EXPECT_EQ(seen.status, 500);
  EXPECT_EQ(seen.calls, std::vector<std::string>{"release"});
}

}  // namespace
}  // namespace fathom::server
