#include <gtest/gtest.h>

#include <chrono>

#include "codec/image_source.h"
#include "fetch/address.h"
#include "fetch/image_fetcher.h"
#include "fetch/small_server.h"
#include "fetch/url_fetcher.h"

namespace fathom::fetch {
namespace {

using Kind = FetchError::Kind;

constexpr size_t kLimit = 1000;
// 1 x 1 pixels, grey.
constexpr std::string_view kPng(
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDAT\x08"
    "\xd7"
    "\x63\x68\0\0\0\x82\0\x81\xdd\x43\x6a\xf4\0\0\0\0IEND\xae\x42\x60\x82",
    67);

std::string response(const std::string& head, const std::string& body) {
  return "HTTP/1.1 " + head + "\r\nConnection: close\r\n\r\n" + body;
}

std::string ok(const std::string& type, const std::string& body) {
  return response(
      "200 OK\r\nContent-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()),
      body);
}

FetchPolicy trusting(const SmallServer& server) {
  FetchPolicy policy;
  policy.trusted_hosts = {server.host()};
  policy.retry_delay_ms = 1;
  policy.total_timeout_ms = 5000;
  return policy;
}

Kind kind_of(const FetchResult& result) {
  EXPECT_NE(result.error, nullptr);
  EXPECT_TRUE(result.bytes.empty());
  if (result.error == nullptr) return Kind::kNoLibrary;
  EXPECT_FALSE(result.error->text.empty());
  return result.error->kind;
}

TEST(Fetch, OnlyPublicAddressesAreSuch) {
  for (const char* text :
       {"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0",
        "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
        "2606:4700::1111", "2a00:1450:4001::200e", "2001:200::1", "2003::1", "3ffe::1"}) {
    EXPECT_TRUE(is_public_address(text)) << text;
  }
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.8",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.9",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::ffff:8.8.8.8",
                           "::ffff:127.0.0.1",
                           "::8.8.8.8",
                           "64:ff9b::808:808",
                           "64:ff9b:1::1",
                           "100::1",
                           "2001::1",
                           "2001:db8::1",
                           "2001:10::1",
                           "2002:0808:0808::1",
                           "3fff::1",
                           "fc00::1",
                           "fd12:3456::1",
                           "fe80::1",
                           "fec0::1",
                           "ff02::1",
                           "5f00::1",
                           "",
                           "localhost",
                           "8.8.8",
                           "1.1.1.1.1"}) {
    EXPECT_FALSE(is_public_address(text)) << text;
  }
}

TEST(Fetch, BytesComeWithTheirType) {
  const SmallServer server([](const std::string&) { return ok("image/png; x=y", "abc"); });
  const FetchResult result = UrlFetcher(trusting(server)).fetch(server.url("/a.png"), kLimit);
  ASSERT_EQ(result.error, nullptr) << result.error->text;
  EXPECT_EQ(result.bytes, "abc");
  EXPECT_EQ(result.content_type, "image/png; x=y");
}

TEST(Fetch, AddressesThatAreNotPublicAreNeverConnectedTo) {
  const SmallServer server([](const std::string&) { return ok("image/png", "secret"); });
  const std::string port = server.host().substr(server.host().find(':'));
  FetchPolicy policy;
  policy.ports = {std::stoi(port.substr(1))};
  policy.max_attempts = 1;
  for (const std::string host : {"127.0.0.1", "localhost", "2130706433", "0x7f.1", "0177.0.0.1",
                                 "127.1", "0", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"}) {
    const FetchResult result = UrlFetcher(policy).fetch("http://" + host + port + "/", kLimit);
    EXPECT_EQ(kind_of(result), Kind::kRefused) << host << ": " << result.error->text;
    EXPECT_FALSE(result.error->retryable);
  }
  EXPECT_EQ(server.num_requests(), 0);
}

TEST(Fetch, UrlsOfOtherKindsAreRefused) {
  const UrlFetcher fetcher{FetchPolicy()};
  for (const char* url :
       {"ftp://e.x/a", "file:///etc/passwd", "gopher://e.x/", "http://user:word@e.x/a",
        "http://user@e.x/", "https://e.x:22/", "http://e.x:8080/a", "http://", "httpx://e.x",
        "http:", "", "a b", "http://[::1/", "http://e.x:99999/", "dict://e.x:11211/"}) {
    EXPECT_EQ(kind_of(fetcher.fetch(url, kLimit)), Kind::kInvalidUrl) << url;
  }
}

TEST(Fetch, RedirectsAreFollowedAndCheckedAgain) {
  int self = 0;
  const SmallServer inner([](const std::string&) { return ok("image/png", "secret"); });
  const SmallServer server([&](const std::string& path) {
    if (path == "/a") return response("302 Found\r\nLocation: /b", "");
    if (path == "/b") return ok("image/png", "there");
    if (path == "/inner") return response("301 M\r\nLocation: " + inner.url("/"), "");
    if (path == "/file") return response("301 M\r\nLocation: file:///etc/passwd", "");
    if (path == "/nowhere") return response("302 Found", "");
    return response("307 T\r\nLocation: /loop" + std::to_string(++self), "");
  });
  const UrlFetcher fetcher(trusting(server));
  EXPECT_EQ(fetcher.fetch(server.url("/a"), kLimit).bytes, "there");
  const FetchResult to_inner = fetcher.fetch(server.url("/inner"), kLimit);
  EXPECT_EQ(kind_of(to_inner), Kind::kInvalidUrl);  // its port, already
  FetchPolicy any_port = trusting(server);
  any_port.ports = {std::stoi(inner.host().substr(inner.host().find(':') + 1))};
  EXPECT_EQ(kind_of(UrlFetcher(any_port).fetch(server.url("/inner"), kLimit)), Kind::kRefused);
  EXPECT_EQ(inner.num_requests(), 0);
  EXPECT_EQ(kind_of(fetcher.fetch(server.url("/file"), kLimit)), Kind::kInvalidUrl);
  EXPECT_EQ(kind_of(fetcher.fetch(server.url("/nowhere"), kLimit)), Kind::kUnavailable);
  EXPECT_EQ(kind_of(fetcher.fetch(server.url("/loop"), kLimit)), Kind::kUnavailable);
  EXPECT_EQ(self, 6);  // five redirects and the first request
}

TEST(Fetch, WhatIsTooLongIsRefused) {
  const SmallServer server([](const std::string& path) {
    if (path == "/said") return ok("image/png", std::string(kLimit + 1, 'x'));
    if (path == "/unsaid") {
      return response("200 OK\r\nContent-Type: image/png", std::string(kLimit + 1, 'x'));
    }
    if (path == "/head") return response("200 OK\r\nX: " + std::string(90000, 'x'), "abc");
    return ok("image/png", std::string(kLimit, 'x'));
  });
  const UrlFetcher fetcher(trusting(server));
  EXPECT_EQ(fetcher.fetch(server.url("/fits"), kLimit).bytes.size(), kLimit);
  EXPECT_EQ(kind_of(fetcher.fetch(server.url("/said"), kLimit)), Kind::kTooLarge);
  EXPECT_EQ(kind_of(fetcher.fetch(server.url("/unsaid"), kLimit)), Kind::kTooLarge);
  EXPECT_EQ(kind_of(fetcher.fetch(server.url("/head"), kLimit)), Kind::kUnavailable);
}

TEST(Fetch, TypesThatAreNoImagesAreRefused) {
  std::string type;
  const SmallServer server([&type](const std::string&) {
    return type.empty() ? response("200 OK\r\nContent-Length: 3", "abc") : ok(type, "abc");
  });
  const UrlFetcher fetcher(trusting(server));
  for (const char* refused : {"text/html; charset=utf-8", "application/json", "images/png"}) {
    type = refused;
    EXPECT_EQ(kind_of(fetcher.fetch(server.url("/"), kLimit)), Kind::kWrongType) << type;
  }
  for (const char* taken : {"IMAGE/PNG", "image/webp", "application/octet-stream", ""}) {
    type = taken;
    EXPECT_EQ(fetcher.fetch(server.url("/"), kLimit).bytes, "abc") << type;
  }
}

TEST(Fetch, FailuresOfTheServerAreTriedAgainAndThoseOfTheClientAreNot) {
  int left = 2;
  const SmallServer server([&left](const std::string& path) {
    if (path == "/absent") return response("404 Not Found", "");
    if (path == "/short") {
      return response("200 OK\r\nContent-Type: image/png\r\nContent-Length: 10", "abc");
    }
    return left-- > 0 ? response("503 Busy", "") : ok("image/png", "abc");
  });
  const UrlFetcher fetcher(trusting(server));
  EXPECT_EQ(fetcher.fetch(server.url("/"), kLimit).bytes, "abc");
  EXPECT_EQ(server.num_requests(), 3);
  EXPECT_EQ(kind_of(fetcher.fetch(server.url("/absent"), kLimit)), Kind::kUnavailable);
  EXPECT_EQ(server.num_requests(), 4);
  EXPECT_EQ(kind_of(fetcher.fetch(server.url("/short"), kLimit)), Kind::kUnavailable);
  EXPECT_EQ(server.num_requests(), 7);
}

TEST(Fetch, TimeIsLimited) {
  const SmallServer server([](const std::string&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return ok("image/png", "abc");
  });
  FetchPolicy policy = trusting(server);
  policy.total_timeout_ms = 150;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(kind_of(UrlFetcher(policy).fetch(server.url("/"), kLimit)), Kind::kUnavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(390));
}

codec::ImageSource url_source(const std::string& url) {
  codec::ImageSource source;
  source.data = url;
  source.path = "p";
  return source;
}

TEST(Fetch, ImagesOfUrlsAreLoadedInOrder) {
  const SmallServer server([](const std::string& path) {
    if (path == "/text") return ok("image/png", "this is no image");
    if (path == "/html") return ok("text/html", "<html>");
    if (path == "/gone") return response("410 Gone", "");
    return ok("image/png", std::string(kPng));
  });
  UrlImageFetcher fetcher(trusting(server));
  const auto load = [&](const std::vector<codec::ImageSource>& sources, codec::ImageLimits limits) {
    return codec::load_images(sources, limits, {}, &fetcher);
  };
  codec::ImageSource data;
  data.kind = codec::ImageSource::Kind::kBytes;
  data.data = std::string(kPng) + "tail";
  const auto loaded = load({url_source(server.url("/1")), data, url_source(server.url("/2"))}, {});
  ASSERT_FALSE(loaded.error) << loaded.error->text;
  ASSERT_EQ(loaded.images.size(), 3u);
  EXPECT_EQ(loaded.images[0].bytes, kPng);
  EXPECT_EQ(loaded.images[1].bytes, data.data);
  EXPECT_EQ(loaded.images[2].plan.num_tokens, 184);

  using Error = codec::ImageErrorKind;
  const auto error_of = [&](const std::string& path, codec::ImageLimits limits = {}) {
    const auto out = load({url_source(server.url("/1")), url_source(server.url(path))}, limits);
    EXPECT_TRUE(out.error);
    return out.error.value_or(codec::ImageError{});
  };
  EXPECT_EQ(error_of("/text").kind, Error::kUnsupportedMediaType);
  EXPECT_EQ(error_of("/html").kind, Error::kUnsupportedMediaType);
  EXPECT_EQ(error_of("/gone").text, "p.image[1]: Failed to download image from URL");
  codec::ImageLimits small;
  small.max_image_bytes = 60;
  EXPECT_EQ(error_of("/2", small).kind, Error::kImageTooLarge);
  small = {};
  small.max_total_bytes = 100;
  EXPECT_EQ(error_of("/2", small).kind, Error::kTotalSizeTooLarge);
}

TEST(Fetch, UrlsOfPrivateHostsAreErrorsThatNameNoAddress) {
  const SmallServer server([](const std::string&) { return ok("image/png", std::string(kPng)); });
  FetchPolicy policy;
  policy.ports.push_back(std::stoi(server.host().substr(server.host().find(':') + 1)));
  UrlImageFetcher fetcher(policy);
  const auto loaded =
      codec::load_images(std::vector{url_source(server.url("/"))}, {}, {}, &fetcher);
  ASSERT_TRUE(loaded.error);
  EXPECT_EQ(loaded.error->kind, codec::ImageErrorKind::kDestinationRejected);
  EXPECT_EQ(loaded.error->text,
            "p.image[0]: the image URL leads to an address that is not fetched from");
}

}  // namespace
}  // namespace fathom::fetch
