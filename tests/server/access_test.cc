// Who may do what.
#include "server/rate_limits.h"
#include "server/server_fixture.h"

namespace fathom::server {
namespace {

using AccessTest = ServerTest;

constexpr std::string_view kKeys =
    "# a comment\n"
    "alice  key-alice-1  requests_per_minute=2\n"
    "bob    sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 concurrent=1\n";

TEST_F(AccessTest, EveryRouteTakesEitherHeader) {
  say("x");
  start(kKeys);
  for (const char* header :
       {"Authorization: Bearer test\r\n", "x-api-key: test\r\n", "authorization: bearer test\r\n",
        "Authorization: Bearer wrong\r\nx-api-key: test\r\n"}) {
    EXPECT_EQ(get("/v1/models", header).status, 200) << header;
    EXPECT_EQ(post(kChat, kHello, header).status, 200) << header;
    EXPECT_EQ(post("/v1/messages", kHello, header).status, 200) << header;
  }
  for (const char* header :
       {"", "Authorization: Bearer wrong\r\n", "Authorization: Basic test\r\n",
        "x-api-key: tes\r\n", "x-api-key: \r\n", "Authorization: Bearer \r\n"}) {
    for (const char* path : {"/v1/models", "/v1/responses/x"}) {
      EXPECT_EQ(get(path, header).status, 401) << header << path;
    }
    for (const char* path :
         {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
          "/v1/messages/count_tokens", "/tokenize", "/detokenize"}) {
      const auto reply = post(path, kHello, header);
      EXPECT_EQ(reply.status, 401) << header << path;
      EXPECT_NE(reply.body.find("authentication_error"), std::string::npos);
    }
  }
  for (const char* path : {"/health", "/ready", "/version"}) EXPECT_EQ(get(path).status, 200);
}

TEST_F(AccessTest, KeysHaveTheirOwnLimits) {
  say("x");
  start(kKeys);
  const std::string alice = "x-api-key: key-alice-1\r\n";
  EXPECT_EQ(post(kChat, kHello, alice).status, 200);
  EXPECT_EQ(post(kChat, kHello, alice).status, 200);
  const auto third = post(kChat, kHello, alice);
  EXPECT_EQ(third.status, 429);
  EXPECT_GT(std::stoi(HttpClient::header(third.headers, "retry-after")), 0);
  EXPECT_EQ(get("/v1/models", alice).status, 200);  // costs nothing

  engine_.answer.reset();
  const std::string bob = "x-api-key: test\r\n";
  HttpClient running(server_->port());
  running.send(HttpClient::request_text("POST", kChat, kHelloStream, bob));
  const RequestId id = engine_.wait_for_request(3);
  EXPECT_EQ(post(kChat, kHello, bob).status, 429);
  engine_.say(id, 100, FinishReason::kLength);
  ASSERT_TRUE(running.wait_for("[DONE]"));
  // Who has read the end of an answer may ask again at once.
  say("x");
  EXPECT_EQ(post(kChat, kHello, bob).status, 200);
  for (int i = 0; i < 200; ++i) {
    HttpClient client(server_->port());
    client.send(HttpClient::request_text("POST", kChat, kHelloStream, bob));
    ASSERT_TRUE(client.wait_for("[DONE]") && client.seen().find("200 OK") != std::string::npos)
        << i << client.seen();
  }
}

TEST(RateLimits, RefillOverTime) {
  RateLimits limits({{"a", 60, 0}});
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(limits.enter(0, 100).allowed);
  EXPECT_FALSE(limits.enter(0, 100).allowed);
  EXPECT_FALSE(limits.enter(0, 100.9).allowed);
  EXPECT_TRUE(limits.enter(0, 101.1).allowed);
  EXPECT_FALSE(limits.enter(0, 101.2).allowed);
  EXPECT_EQ(limits.at_once(0), 61);
}

TEST(ApiKeys, BadFilesNameTheLineAndNotTheKey) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "has no key"},
      {"# only\n\n", "has no key"},
      {"alice\n", "line 1: there is no key"},
      {"ok key-12345678\nal/ice key-secret-1\n", "line 2: the first word"},
      {"alice short\n", "8 to 512"},
      {"alice sha256:12\n", "64 hexadecimal"},
      {"alice key-secret-1 often\n", "requests_per_minute=N"},
      {"alice key-secret-1 concurrent=-1\n", "concurrent=N"},
      {"alice key-secret-1\nbob key-secret-1\n", "line 2: this key was there"},
  };
  for (const auto& [text, says] : cases) {
    const auto keys = ApiKeys::parse(text, "keys.txt", 0, 0);
    ASSERT_FALSE(keys.has_value()) << text;
    EXPECT_NE(keys.error().message().find(says), std::string::npos) << keys.error().message();
    EXPECT_EQ(keys.error().message().find("secret"), std::string::npos);
    EXPECT_TRUE(keys.error().message().starts_with("keys.txt: "));
  }
}

TEST_F(AccessTest, PagesOfOtherSitesCannotUseAnOpenServer) {
  say("x");
  start();
  const std::string port = std::to_string(server_->port());
  EXPECT_EQ(post(kChat, kHello, "Origin: https://evil.example\r\n").status, 403);
  EXPECT_EQ(post(kChat, kHello, "Origin: null\r\n").status, 403);
  EXPECT_EQ(post(kChat, kHello, "Origin: http://localhost\r\n").status, 200);
  HttpClient rebound(server_->port());
  rebound.send("GET /v1/models HTTP/1.1\r\nHost: evil.example:" + port + "\r\n\r\n");
  EXPECT_EQ(rebound.read_reply().status, 403);
  HttpClient loopback(server_->port());
  loopback.send("GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:" + port + "\r\n\r\n");
  EXPECT_EQ(loopback.read_reply().status, 200);
}

TEST_F(AccessTest, CorsIsASwitch) {
  say("x");
  options_.cors_origin = "https://good.example";
  start();
  const auto allowed = post(kChat, kHello, "Origin: https://good.example\r\n");
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(HttpClient::header(allowed.headers, "access-control-allow-origin"),
            "https://good.example");
  HttpClient client(server_->port());
  const auto preflight =
      client.ask("OPTIONS", kChat, "",
                 "Origin: https://good.example\r\n"
                 "Access-Control-Request-Headers: authorization, x-stainless-os\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(HttpClient::header(preflight.headers, "access-control-allow-headers"),
            "authorization, x-stainless-os");
}

TEST_F(AccessTest, AnErrorIsShortWhateverItNames) {
  start();
  const std::string name(3 << 20, 'n');
  const auto reply = post(kChat, R"({"messages":[],"model":")" + name + "\"}");
  EXPECT_EQ(reply.status, 404);
  EXPECT_LT(reply.body.size(), 5000u);
  const std::string wide = "\xe2\x82\xac";  // three bytes: the cut may fall within
  for (int shift = 0; shift < 3; ++shift) {
    std::string text(static_cast<size_t>(shift), 'x');
    for (int i = 0; i < 2000; ++i) text += wide;
    const auto cut = post(kChat, R"({"messages":[],"model":")" + text + "\"}");
    EXPECT_TRUE(codec::parse_json(cut.body).has_value());
    EXPECT_GT(cut.body.size(), 4000u);
  }
}

TEST_F(AccessTest, CorsOriginIsForThatSiteOnly) {
  say("x");
  options_.cors_origin = "https://good.example";
  start();
  // A browser compares the header with the page's own origin, and keeps the answer from others.
  HttpClient client(server_->port());
  const auto preflight = client.ask("OPTIONS", kChat, "",
                                    "Origin: https://evil.example\r\n"
                                    "Access-Control-Request-Headers: x\"y, authorization\r\n");
  EXPECT_EQ(HttpClient::header(preflight.headers, "access-control-allow-origin"),
            "https://good.example");
  EXPECT_EQ(HttpClient::header(preflight.headers, "access-control-allow-headers"), "");
  EXPECT_EQ(HttpClient::header(preflight.headers, "vary"), "origin");
  EXPECT_EQ(post(kChat, kHello, "Origin: https://evil.example\r\n").status, 403);
  EXPECT_EQ(post(kChat, kHello, "Origin: https://good.example.evil\r\n").status, 403);
}

TEST_F(AccessTest, WithoutTheSwitchThereIsNoCors) {
  say("x");
  start();
  HttpClient client(server_->port());
  const auto preflight = client.ask("OPTIONS", kChat, "", "Origin: https://good.example\r\n");
  EXPECT_EQ(preflight.status, 405);
  EXPECT_EQ(HttpClient::header(preflight.headers, "access-control-allow-origin"), "");
}

TEST_F(AccessTest, CorsForAllAndKeys) {
  say("x");
  options_.cors_origin = "*";
  start(kKeys);
  HttpClient client(server_->port());
  // A preflight has no key, and needs none.
  EXPECT_EQ(client.ask("OPTIONS", kChat, "", "Origin: https://any.example\r\n").status, 204);
  const auto refused = post(kChat, kHello, "Origin: https://any.example\r\n");
  EXPECT_EQ(refused.status, 401);  // which the page may read
  EXPECT_EQ(HttpClient::header(refused.headers, "access-control-allow-origin"), "*");
  EXPECT_EQ(post(kChat, kHello, "Origin: https://any.example\r\nx-api-key: test\r\n").status, 200);
}

TEST_F(AccessTest, NoPathIsAFile) {
  start();
  for (const char* path : {"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
                           "/v1/models/../../../etc/passwd", "/v1/responses/..%2f..%2fetc%2fpasswd",
                           "/./health", "/health/", "/v1//models", "/v1/models/%00", "*"}) {
    const auto reply = get(path);
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(reply.body.find("root:"), std::string::npos);
  }
}

}  // namespace
}  // namespace fathom::server
