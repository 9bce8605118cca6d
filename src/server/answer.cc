#include "server/answer.h"

#include <mutex>

namespace fathom::server {

// Between the connection, which may end at any time, and the engine, which may not have the
// requests yet.
class ClientWatch {
 public:
  explicit ClientWatch(Generations& generations) : generations_(generations) {}
  // Cancels what was started and what will be.
  void close() {
    std::vector<RequestId> ids;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      ids.swap(ids_);
    }
    for (const RequestId id : ids) generations_.cancel(id);
  }
  void started(RequestId id) {
    {
      const std::lock_guard lock(mutex_);
      if (!closed_) {
        ids_.push_back(id);
        return;
      }
    }
    generations_.cancel(id);
  }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  Generations& generations_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::vector<RequestId> ids_;
};

void Answer::flush() {
  if (sent_) return;
  if (streaming_) {
    std::string text = std::exchange(events_, {});
    if (done_ && !failed_) text += last_event();
    if (done_) {
      exchange_->end_events(std::move(text));
    } else if (!text.empty()) {
      exchange_->write_events(std::move(text));
    }
  } else if (done_ && !failed_) {
    exchange_->reply(200, whole());
  }
  if (!done_) return;
  sent_ = true;
  exchange_.reset();  // the request is over for the client, whatever the engine still does
}

void Answer::fail(const ApiError& error) {
  done_ = failed_ = true;
  if (streaming_) {
    events_ += exchange_->error_event(error);
  } else {
    exchange_->fail(error);
  }
}

std::shared_ptr<ClientWatch> watch_client(const Services& services, Exchange& exchange) {
  auto watch = std::make_shared<ClientWatch>(services.generations);
  exchange.on_close([watch] { watch->close(); });
  return watch;
}

bool start_generations(const Services& services, const std::shared_ptr<Exchange>& exchange,
                       const std::shared_ptr<ClientWatch>& watch, double prepare_s,
                       std::vector<std::pair<Request, std::shared_ptr<Generation>>> generations) {
  GenerationRecord record;
  record.request_id = exchange->request_id();
  record.route = exchange->route();
  record.key = exchange->key();
  record.prepare_s = prepare_s;
  for (auto& [request, generation] : generations) {
    if (watch->closed()) return false;
    request.cache_salt = exchange->key();
    const Result<RequestId> id =
        services.generations.start(std::move(request), std::move(generation), record);
    if (!id) {
      watch->close();
      exchange->fail(id.error());
      return false;
    }
    watch->started(*id);
  }
  return true;
}

void start_answer(const Services& services, const std::shared_ptr<Exchange>& exchange,
                  const std::shared_ptr<ClientWatch>& watch, Request request,
                  std::shared_ptr<Generation> answer, bool streaming, double prepare_s) {
  std::vector<std::pair<Request, std::shared_ptr<Generation>>> one;
  one.emplace_back(std::move(request), std::move(answer));
  const bool started = start_generations(services, exchange, watch, prepare_s, std::move(one));
  // At once, so that comments keep the connection alive while the prompt is computed; unless the
  // event thread was faster.
  if (started && streaming) exchange->begin_events();
}

ApiError finish_error(const TokenEvent& event) {
  if (event.finish == FinishReason::kCancelled) {
    return {.status = 503, .message = "the request was ended because the server is shutting down"};
  }
  return api_error(event.error);
}

void on_codec_thread(const Services& services, std::shared_ptr<Exchange> exchange,
                     std::function<void(const std::shared_ptr<Exchange>&)> work) {
  const bool taken = services.codec.submit([exchange, work = std::move(work)] {
    work(exchange);
    exchange->body_done();
  });
  if (taken) return;
  exchange->fail({.status = 429,
                  .message = "too many requests are waiting; try again later",
                  .retry_after_s = 1});
}

}  // namespace fathom::server
