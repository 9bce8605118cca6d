// fathom serve --print-config: every option as a line of TOML that --config reads.
#include <cstdio>

#include "codec/json_text.h"
#include "serve.h"

namespace fathom::app {
namespace {

class Toml {
 public:
  void text(const char* name, const std::string& value) {
    line(name);
    codec::append_json_string(value, &out_);  // a JSON string is a TOML basic string
    out_ += '\n';
  }
  void texts(const char* name, const std::vector<std::string>& values) {
    line(name);
    out_ += '[';
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) out_ += ", ";
      codec::append_json_string(values[i], &out_);
    }
    out_ += "]\n";
  }
  template <class Int>
  void number(const char* name, Int value) {
    line(name);
    out_ += std::to_string(value) + '\n';
  }
  static std::string real_text(double value) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
  }
  void real(const char* name, double value) {
    line(name);
    out_ += real_text(value) + '\n';
  }
  void flag(const char* name, bool value) {
    line(name);
    out_ += value ? "true\n" : "false\n";
  }
  void section(const char* title) {
    out_ += std::string(out_.empty() ? "" : "\n") + "# " + title + '\n';
  }
  std::string take() { return std::move(out_); }

 private:
  void line(const char* name) { out_ += std::string(name) + " = "; }
  std::string out_;
};

void print_engine(const EngineOptions& e, Toml* toml) {
  toml->section("engine; \"\" leaves the choice to the program");
  toml->text("model", e.model);
  toml->text("device", e.device);
  toml->text("experts-in", e.experts);
  toml->text("engram-in", e.engram);
  toml->text("threads", e.threads > 0 ? std::to_string(e.threads) : "");
  toml->text("isa", e.isa);
  toml->text("prefill", !e.prefill ? "" : *e.prefill == PrefillMode::kExact ? "exact" : "replay");
  toml->text("numerics", e.numerics);
  toml->text("kv-memory", e.kv_memory_bytes > 0 ? std::to_string(e.kv_memory_bytes) : "");
  toml->number("max-batch", e.max_batch);
  toml->number("chunk", e.chunk_tokens);
  toml->text("step-latency-target-ms",
             e.step_latency_target_ms > 0 ? Toml::real_text(e.step_latency_target_ms) : "");
  toml->text("prefix-cache", e.prefix_cache == PrefixCache::kOn       ? "on"
                             : e.prefix_cache == PrefixCache::kReplay ? "replay"
                                                                      : "off");
  toml->number("max-draft", e.max_draft);
  toml->text("draft-verify", e.draft_verify == DraftVerify::kFixed ? "fixed" : "confidence");
  toml->flag("no-async", !e.asynchronous);
  toml->number("max-queue", e.max_queue);
}

}  // namespace

std::string serve_config(const ServeOptions& o) {
  const server::ServerOptions& s = o.server;
  Toml toml;
  toml.section("access");
  toml.text("host", s.http.host);
  toml.number("port", s.http.port);
  toml.text("keys-file", o.keys_file);
  toml.flag("open-to-network", o.open_to_network);
  toml.text("cors-origin", s.cors_origin);
  toml.number("requests-per-minute", s.key_requests_per_minute);
  toml.number("concurrent", s.key_concurrency);
  toml.flag("quiet", o.quiet);
  toml.section("what operators see");
  toml.text("log-level", std::string(server::log_level_name(o.telemetry.log_level)));
  toml.flag("vllm-metrics", o.telemetry.vllm_names);
  toml.flag("protect-metrics", o.telemetry.protect_metrics);
  toml.section("answers");
  toml.texts("model-name", o.model_names);
  toml.flag("any-model-name", s.any_model_name);
  toml.text("think", s.default_thinking ? "on" : "off");
  toml.flag("client-sampling", s.client_sampling);
  toml.number("max-n", s.max_n);
  toml.number("stored-responses", s.stored_responses_bytes);
  toml.number("stored-responses-ttl-s", s.stored_responses_ttl_s);
  toml.flag("allow-image-urls", o.images.allow_urls);
  toml.texts("image-host", o.images.trusted_hosts);
  toml.section("limits");
  toml.number("codec-threads", s.codec_threads);
  toml.number("codec-queue", s.codec_queue);
  toml.number("io-threads", s.http.io_threads);
  toml.number("max-connections", s.http.max_connections);
  toml.number("max-body", s.http.limits.max_body_bytes);
  toml.number("max-header", s.http.limits.max_header_bytes);
  toml.number("max-unsent", s.http.max_unsent_bytes);
  toml.number("head-timeout-ms", s.http.head_timeout_ms);
  toml.number("body-timeout-ms", s.http.body_timeout_ms);
  toml.number("idle-timeout-ms", s.http.idle_timeout_ms);
  toml.number("write-timeout-ms", s.http.write_timeout_ms);
  toml.number("keep-alive-ms", s.http.keep_alive_ms);
  toml.real("request-timeout-s", s.request_timeout_s);
  toml.number("drain-timeout-s", o.drain_timeout_s);
  print_engine(o.engine, &toml);
  return toml.take();
}

}  // namespace fathom::app
