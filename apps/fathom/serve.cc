#include "serve.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>

#include "base/line_writer.h"
#include "engine.h"
#include "failure.h"
#include "images.h"
#include "interrupt.h"
#include "memory_use.h"
#include "output.h"
#include "server/ids.h"
#include "server/page.h"
#include "server/server.h"

namespace fathom::app {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks for signals; a signal also ends the wait.
constexpr int kPatienceMs = 200;
constexpr int kFlushMs = 2000;
constexpr const char* kLostText =
    "the GPU was lost: the requests that ran got an error, and this process can run no others; "
    "start it again";
constexpr size_t kMaxLogBytes = size_t{4} << 20;  // that wait for a slow stderr

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<server::ApiKeys> load_keys(const ServeOptions& options) {
  if (!options.keys_file.empty()) {
    FATHOM_ASSIGN(const std::string text, read_text(options.keys_file));
    FATHOM_ASSIGN(
        server::ApiKeys keys,
        server::ApiKeys::parse(text, options.keys_file, options.server.key_requests_per_minute,
                               options.server.key_concurrency));
    struct stat info {};
    if (stat(options.keys_file.c_str(), &info) == 0 && (info.st_mode & S_IROTH) != 0) {
      std::fprintf(stderr, "fathom: warning: %s can be read by every user of this machine\n",
                   options.keys_file.c_str());
    }
    return keys;
  }
  if (!is_loopback(options.server.http.host) && !options.open_to_network) {
    return wrong_use("--host " + options.server.http.host +
                     " can be reached by others, who could all use the model; give --keys-file "
                     "FILE, or --open-to-network if that is what you want");
  }
  return server::ApiKeys();
}

// The folder's name; of a snapshot in the hub cache the name of the model.
std::string own_name(const Engine& engine) {
  std::filesystem::path dir = engine.dir;
  if (!dir.has_filename()) dir = dir.parent_path();
  const std::filesystem::path snapshots = dir.parent_path();
  if (snapshots.filename() != "snapshots") return dir.filename().string();
  std::string name = snapshots.parent_path().filename().string();  // models--OWNER--NAME
  const size_t at = name.rfind("--");
  return at == name.npos ? name : name.substr(at + 2);
}

server::ServedModel served_model(const Engine& engine, const ServeOptions& options) {
  server::ServedModel model;
  model.names.push_back(own_name(engine));
  for (const std::string& name : options.model_names) model.names.push_back(name);
  model.tokenizer = engine.tokenizer.get();
  model.context_tokens = engine.context_tokens;
  model.fingerprint = "fp_fathom_" FATHOM_VERSION;
  model.created = server::unix_seconds();
  model.program_version = FATHOM_VERSION;
  model.add_images = [&engine, images = options.images](const codec::Prompt& prompt, Request*) {
    return check_images(prompt, images, engine.config());
  };
  model.compile = [grammars = engine.grammars.get()](const Constraint& constraint) {
    const auto grammar = grammars->acquire(constraint);
    return grammar ? Status() : grammar.error();
  };
  return model;
}

void say(const ServeOptions& options, const std::string& text) {
  if (!options.quiet) std::fprintf(stderr, "fathom: %s\n", text.c_str());
}

// Waits for the requests that run.  A second signal, or the time limit, ends them.  `is_lost`: they
// have their errors, which only have to be sent.
void drain(server::Server& server, const ServeOptions& options, bool is_lost) {
  server.begin_drain();
  clear_interrupt();
  const size_t active = server.num_active();
  if (active > 0 && !is_lost) {
    say(options, "shutting down: " + std::to_string(active) +
                     " requests run to their end (a second signal ends them)");
  }
  const auto deadline =
      Clock::now() + (is_lost ? std::chrono::milliseconds(kFlushMs)
                              : std::chrono::milliseconds(1000LL * options.drain_timeout_s));
  while (server.num_active() > 0) {
    if (interrupted() || Clock::now() >= deadline) {
      if (!is_lost) say(options, "ending " + std::to_string(server.num_active()) + " requests");
      server.cancel_all();
      break;
    }
    poll(nullptr, 0, 10);
  }
  const auto last = Clock::now() + std::chrono::milliseconds(kFlushMs);
  while (server.num_active() > 0 && Clock::now() < last) poll(nullptr, 0, 5);
  server.flush(kFlushMs);
}

std::string lost_lines(int64_t count) {
  return R"({"level":"warning","event":"log_lines_lost","count":)" + std::to_string(count) + "}";
}

// Before the model is loaded and measured, which takes long: that the port is taken is known at
// once.
Result<std::unique_ptr<net::HttpServer>> take_port(const ServeOptions& options) {
  auto listening = net::HttpServer::listen(options.server.http);
  if (listening || listening.error().code() != StatusCode::kFailedPrecondition) return listening;
  // It is no fault of the model, which the exit code would say.
  return Status(StatusCode::kInternal, listening.error().message());
}

Status serve(const ServeOptions& options) {
  FATHOM_ASSIGN(server::ApiKeys keys, load_keys(options));
  FATHOM_ASSIGN(std::unique_ptr<net::HttpServer> listening, take_port(options));
  EngineOptions engine_options = options.engine;
  engine_options.measure_costs = engine_options.max_draft > 0;
  assembly::Hooks hooks = start_hooks(options.quiet);
  const auto is_lost = std::make_shared<std::atomic<bool>>(false);
  hooks.on_lost = [is_lost](const Status&) { is_lost->store(true); };
  FATHOM_ASSIGN(const std::unique_ptr<Engine> engine, start_engine(engine_options, hooks));
  if (engine->gpu_memory) {
    std::string text = "memory of the GPU: " + gpu_memory_text(*engine->gpu_memory);
    text.pop_back();  // say() ends the line
    say(options, text);
  }
  const NoSignalsForNewThreads guard;
  server::ServedModel model = served_model(*engine, options);
  server::TelemetryOptions telemetry_options = options.telemetry;
  telemetry_options.model_name = model.names.front();
  LineWriter log(STDERR_FILENO, kMaxLogBytes, lost_lines);
  server::Telemetry telemetry(telemetry_options, *engine->requests,
                              [&log](std::string line) { log.write(std::move(line)); });
  FATHOM_ASSIGN(const std::unique_ptr<server::Server> server,
                server::Server::create(options.server, std::move(model), std::move(keys),
                                       *engine->requests, telemetry));
  server::add_page_routes(&server->router());
  telemetry.add_routes(&server->router());
  server->on_tick([&telemetry, s = server.get()] { telemetry.tick(s->draining()); });
  server->start(std::move(listening));
  const std::string& host = options.server.http.host;
  const bool is_v6 = host.find(':') != host.npos;
  say(options, "listening on http://" + (is_v6 ? "[" + host + "]" : host) + ":" +
                   std::to_string(server->port()));
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // in this thread, and no other
  while (!interrupted() && !is_lost->load()) poll(nullptr, 0, kPatienceMs);
  drain(*server, options, is_lost->load());
  if (is_lost->load()) return Status(StatusCode::kInternal, kLostText);
  return Status();
}

}  // namespace

int run_serve(const ServeOptions& options) {
  if (options.print_config) return finish(print(serve_config(options)));
  return finish(serve(options));
}

}  // namespace fathom::app
