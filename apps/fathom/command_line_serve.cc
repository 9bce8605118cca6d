#include "command_line_serve.h"

#include "command_line_codec.h"
#include "command_line_options.h"

namespace fathom::app {
namespace {

constexpr int kHourMs = 3'600'000;

Option add_size(Command app, const std::string& name, size_t* out, const std::string& text) {
  return app.add(name, "SIZE", text, [=](const std::string& value) {
    const std::optional<int64_t> bytes = parse_size(value);
    if (!bytes) throw bad_value(name, value, "a size such as 64K or 512MiB");
    *out = static_cast<size_t>(*bytes);
  });
}

Option add_string(Command app, const std::string& name, std::string* out,
                  const std::string& value_name, const std::string& text) {
  return app.add(name, value_name, text, [out](const std::string& value) { *out = value; });
}

void add_access(Command app, ServeOptions* o) {
  add_string(app, "--host", &o->server.http.host, "ADDRESS",
             "where to listen (default 127.0.0.1: this machine only)");
  add_int<uint16_t>(app, "--port", &o->server.http.port, 0, 65535,
                    "port to listen on; 0: any free one (default 8000)");
  add_string(app, "--keys-file", &o->keys_file, "FILE",
             "who may use the server: a line is NAME KEY; without it everybody who reaches it");
  app.add_flag("--open-to-network", &o->open_to_network,
               "no keys although others can reach --host");
  add_string(app, "--cors-origin", &o->server.cors_origin, "ORIGIN",
             "pages of this site may use the server; *: all");
  add_int<int>(app, "--requests-per-minute", &o->server.key_requests_per_minute, 0, 1'000'000,
               "of each key; 0: no limit (default)");
  add_int<int>(app, "--concurrent", &o->server.key_concurrency, 0, 1'000'000,
               "requests of each key at once; 0: no limit (default)");
}

void add_observation(Command app, ServeOptions* o) {
  app.add("--log-level", "LEVEL",
          "requests that are logged, as JSON on stderr: info, all (default); warning, 4xx and 5xx; "
          "error, 5xx; off",
          [o](const std::string& value) {
            const auto level = server::parse_log_level(value);
            if (!level) throw bad_value("--log-level", value, "off, error, warning or info");
            o->telemetry.log_level = *level;
          });
  app.add_flag("--vllm-metrics", &o->telemetry.vllm_names,
               "/metrics also under the names that vLLM gives them");
  app.add_flag("--protect-metrics", &o->telemetry.protect_metrics, "/metrics wants a key, too");
}

void add_answers(Command app, ServeOptions* o) {
  app.add_repeated("--model-name", "NAME", "another name for the model; may be given several times",
                   [o](const std::string& value) { o->model_names.push_back(value); });
  app.add_flag("--any-model-name", &o->server.any_model_name, "take every name for the model");
  app.add("--think", "MODE", "on or off: of requests that do not say (default on)",
          [o](const std::string& value) {
            if (value != "on" && value != "off") throw bad_value("--think", value, "on or off");
            o->server.default_thinking = value == "on";
          });
  app.add_flag("--client-sampling", &o->server.client_sampling,
               "take temperature and top_p as asked for, also where the released service does not");
  add_image_options(app, &o->images);
  add_int<int>(app, "--max-n", &o->server.max_n, 1, 128, "samples of one completion (default 16)");
  add_size(app, "--stored-responses", &o->server.stored_responses_bytes,
           "memory for responses that previous_response_id can name (default 64M)");
  add_int<int>(app, "--stored-responses-ttl-s", &o->server.stored_responses_ttl_s, 1, 30 * 86400,
               "seconds for which they can be named (default 86400)");
}

void add_limits(Command app, ServeOptions* o) {
  net::HttpServerOptions* http = &o->server.http;
  add_int<int>(app, "--max-queue", &o->engine.max_queue, 1, 1'000'000,
               "requests that run or wait; more get 429 (default 1000)");
  add_int<int>(app, "--codec-threads", &o->server.codec_threads, 1, 256,
               "threads that read requests and encode prompts (default 2)");
  add_int<size_t>(app, "--codec-queue", &o->server.codec_queue, 1, 1'000'000,
                  "requests that wait for them; more get 429 (default 256)");
  add_int<int>(app, "--io-threads", &http->io_threads, 1, 64,
               "threads for connections (default 1)");
  add_int<size_t>(app, "--max-connections", &http->max_connections, 1, 1'000'000,
                  "open at once (default 4096)");
  add_size(app, "--max-body", &http->limits.max_body_bytes, "of a request (default 64M)");
  add_size(app, "--max-header", &http->limits.max_header_bytes, "of a request (default 16K)");
  add_size(app, "--max-unsent", &http->max_unsent_bytes,
           "of a stream whose client reads too slowly; more ends it (default 1M)");
  add_int<int>(app, "--head-timeout-ms", &http->head_timeout_ms, 10, kHourMs,
               "for the headers of a request (default 10000)");
  add_int<int>(app, "--body-timeout-ms", &http->body_timeout_ms, 10, kHourMs,
               "for the body of a request (default 60000)");
  add_int<int>(app, "--idle-timeout-ms", &http->idle_timeout_ms, 10, kHourMs,
               "between two requests of a connection (default 75000)");
  add_int<int>(app, "--write-timeout-ms", &http->write_timeout_ms, 10, kHourMs,
               "for a client that takes nothing (default 30000)");
  add_int<int>(app, "--keep-alive-ms", &http->keep_alive_ms, 10, kHourMs,
               "between comments in a silent stream (default 15000)");
  app.add("--request-timeout-s", "X", "for one generation; 0: no limit (default)",
          [o](const std::string& value) {
            const std::optional<double> seconds = parse_number<double>(value, 0, 1e6);
            if (!seconds) throw bad_value("--request-timeout-s", value, "a number from 0 to 1e6");
            o->server.request_timeout_s = *seconds;
          });
  add_int<int>(app, "--drain-timeout-s", &o->drain_timeout_s, 0, 86400,
               "for requests that run at the end (default 60)");
}

}  // namespace

void add_serve(Command root, ServeOptions* o, std::function<int()>* run) {
  Command app = root.add_command("serve", "Serve the model over HTTP", R"(
OpenAI's Chat Completions, Completions and Responses, Anthropic's Messages; docs/how-to/serve.md.
SIGTERM or ctrl-C: answers that run are finished, new requests refused.

Examples:
  fathom serve
  fathom serve --port 9000 --keys-file keys.txt --host 0.0.0.0
  fathom serve --config serve.toml
  curl http://127.0.0.1:8000/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hi"}]}')");
  app.add("--config", "FILE", "TOML: the options below without the dashes",
          [](const std::string&) {});  // read before, by add_config_file
  app.add_flag("--print-config", &o->print_config, "print all options as such a file, and end");
  app.add_flag("--quiet", &o->quiet, "nothing on stderr but failures");
  add_access(app, o);
  add_observation(app, o);
  add_answers(app, o);
  add_limits(app, o);
  add_engine(app, &o->engine);
  app.on_use([=] { *run = [o] { return run_serve(*o); }; });
}

void add_config_file(const CommandLine& line, std::vector<std::string>* arguments) {
  if (arguments->empty() || arguments->front() != "serve") return;
  std::string file;
  for (size_t i = 1; i < arguments->size(); ++i) {
    const std::string& one = (*arguments)[i];
    if (one == "--config" && i + 1 < arguments->size()) file = (*arguments)[i + 1];
    if (one.starts_with("--config=")) file = one.substr(one.find('=') + 1);
  }
  if (file.empty()) return;
  const std::vector<std::string> more =
      line.read_config("serve", file, {"config", "help", "print-config"});
  arguments->insert(arguments->begin() + 1, more.begin(), more.end());
}

}  // namespace fathom::app
