#include "server/exchange.h"

#include "codec/output/answer_writer.h"

namespace fathom::server {
namespace {

constexpr int kClientClosed = 499;  // as nginx logs it

}  // namespace

Exchange::Exchange(net::HttpRequest request, std::shared_ptr<net::Responder> responder,
                   net::HttpHeaders headers, HttpRecord record, Dialect dialect, Hooks hooks)
    : request_(std::move(request)),
      responder_(std::move(responder)),
      headers_(std::move(headers)),
      record_(std::move(record)),
      dialect_(dialect),
      hooks_(std::move(hooks)) {}

Exchange::~Exchange() {
  if (record_.status == 0) record_.status = responder_->closed() ? kClientClosed : 500;
  if (streaming_ && !whole_ && responder_->closed()) record_.status = kClientClosed;
  release();
  body_done();
  if (hooks_.done) hooks_.done(record_);
}

void Exchange::body_done() {
  if (std::exchange(body_done_, true)) return;
  std::string().swap(request_.body);
  if (hooks_.body_done) hooks_.body_done();
}

void Exchange::release() {
  if (!released_.exchange(true) && hooks_.release) hooks_.release();
}

void Exchange::reply(int status, std::string body, std::string_view content_type,
                     net::HttpHeaders more) {
  record_.status = responder_->closed() ? kClientClosed : status;
  release();
  net::HttpResponse response{.status = status, .headers = headers_, .body = std::move(body)};
  response.headers.emplace_back("content-type", content_type);
  for (auto& header : more) response.headers.push_back(std::move(header));
  responder_->send(std::move(response));
}

void Exchange::fail(const ApiError& error) {
  net::HttpHeaders more;
  if (error.retry_after_s > 0) {
    more.emplace_back("retry-after", std::to_string(error.retry_after_s));
  }
  reply(error.status, error_body(error, dialect_, record_.request_id), "application/json",
        std::move(more));
}

void Exchange::begin_events() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(streaming_, true)) return;
  record_.status = 200;
  net::HttpResponse head{.status = 200, .headers = headers_};
  head.headers.emplace_back("content-type", "text/event-stream; charset=utf-8");
  head.headers.emplace_back("cache-control", "no-cache");
  head.headers.emplace_back("x-accel-buffering", "no");
  responder_->begin_stream(std::move(head));
}

void Exchange::end_events(std::string last) {
  begin_events();
  whole_ = !responder_->closed();
  release();
  responder_->write(std::move(last));
  responder_->end();
}

std::string Exchange::error_event(const ApiError& error) const {
  const bool named = dialect_ == Dialect::kAnthropic || record_.route == "/v1/responses";
  return codec::server_sent_event(
      {named ? "error" : "", error_body(error, dialect_, record_.request_id)});
}

}  // namespace fathom::server
