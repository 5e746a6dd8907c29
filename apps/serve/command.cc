// coppice serve: models behind HTTP.
#include "command.h"

#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "files.h"
#include "http_text.h"
#include "options.h"
#include "server.h"
#include "settings.h"
#include "terminal.h"

namespace coppice::app {
namespace {

constexpr const char* kPrefix = "COPPICE_SERVE_";
constexpr int kMostPort = 65535;
constexpr double kMostSeconds = 1e6;

struct Serve {
  ModelFlags model;
  SpeculationFlags speculation;
  EngineFlags engine;
  std::vector<std::string> models, drafters, keys, origins;
  std::string key_file, config;
  bool print_config = false;
  int parallel = 16;
  std::uint64_t memory = 0;
  serve::ServerOptions server;
};

// Bytes, as "4MB". CLI11 alone would read "-5" as a number near 2^64.
template <class Bytes>
void add_size(CLI::App& app, const char* name, Bytes& value, const char* help, const char* group) {
  const CLI::Validator unsigned_only(
      [](std::string& text) { return text.find('-') == std::string::npos ? "" : "a size is not negative"; },
      "");
  app.add_option(name, value, help)
      ->transform(CLI::AsSizeValue(false))
      ->transform(unsigned_only)  // the last one given comes first
      ->group(group)
      ->capture_default_str();
}

void add_seconds(CLI::App& app, const char* name, double& value, double least, const char* help,
                 const char* group) {
  const CLI::Validator number(
      [](std::string& text) {  // a range alone lets NaN pass
        double seconds = 0;
        const bool right = CLI::detail::lexical_cast(text, seconds) && std::isfinite(seconds);
        return right ? std::string() : text + " is no number of seconds";
      },
      "");
  app.add_option(name, value, help)
      ->check(CLI::Range(least, kMostSeconds))
      ->check(number)
      ->group(group)
      ->capture_default_str();
}

void add_network(CLI::App& app, Serve& flags) {
  const char* group = "Network";
  serve::HttpOptions& http = flags.server.http;
  serve::HttpLimits& limits = http.limits;
  app.add_option("--host", http.host, "address to listen on; 0.0.0.0: all of this machine's")
      ->group(group)
      ->capture_default_str();
  app.add_option("--port", http.port, "0: any that is free")
      ->check(CLI::Range(0, kMostPort))
      ->group(group)
      ->capture_default_str();
  app.add_option("--api-key", flags.keys, "a key that requests must bring; repeatable")->group(group);
  app.add_option("--api-key-file", flags.key_file, "a file with such keys, one a line")->group(group);
  app.add_option("--cors", flags.origins, "an origin whose pages may ask here, or *; repeatable")
      ->group(group);
  app.add_option("--log", flags.server.log, "a file for one line of JSON a request; -: stdout")->group(group);
  add_size(app, "--max-body", limits.body_bytes, "bytes of a request's body (4MB ...)", group);
  add_size(app, "--max-unsent", limits.unsent_bytes, "bytes of a stream that may wait for a slow reader",
           group);
  app.add_option("--max-connections", limits.connections, "at once")
      ->check(CLI::Range(1, 100000))
      ->group(group)
      ->capture_default_str();
  const auto seconds = [&](const char* name, double& value, const char* help) {
    add_seconds(app, name, value, 0.01, help, group);
  };
  seconds("--head-seconds", limits.head_seconds, "for a request's line and fields");
  seconds("--body-seconds", limits.body_seconds, "for its body");
  seconds("--idle-seconds", limits.idle_seconds, "between two requests of a connection");
  seconds("--send-seconds", limits.send_seconds, "in which a reader must take something of its answer");
}

void add_load(CLI::App& app, Serve& flags) {
  const char* group = "Load";
  serve::HostOptions& host = flags.server.models.host;
  const auto count = [&](const char* name, int& value, int least, const char* help) {
    app.add_option(name, value, help)->check(CLI::Range(least, 1 << 28))->group(group)->capture_default_str();
  };
  const auto seconds = [&](const char* name, double& value, const char* help) {
    add_seconds(app, name, value, 0.0, help, group);
  };
  app.add_option("--parallel", flags.parallel, "requests of a model in work at once")
      ->check(CLI::Range(1, 256))
      ->group(group)
      ->capture_default_str();
  count("--queue", host.max_waiting, 0, "requests that may wait beside them; more hear 429");
  count(
      "--positions", host.engine.positions, 0,
      "tokens the cache of an engine holds for all of them; 0: --parallel times --context, if --cache-memory "
      "has room for so many");
  add_size(
      app, "--cache-memory", host.cache_bytes,
      "bytes of an engine's cache, at most (2GB ...), though it always holds one --context; 0: an eighth of "
      "the memory that is free, or of --memory-limit",
      group);
  count("--engines", host.max_engines, 1, "mixes of drafters and policy in use at once");
  seconds("--engine-idle-seconds", host.engine_idle_seconds,
          "until an engine of another mix than the default is freed");
  seconds("--timeout", host.request_seconds, "for a request; then its answer ends where it is. 0: none");
  seconds("--load-wait-seconds", flags.server.models.wait_seconds,
          "that a request waits for its model to be loaded");
  seconds("--drain-seconds", flags.server.drain_seconds, "for requests in work, after SIGTERM or Ctrl-C");
  add_size(app, "--memory-limit", flags.memory, "bytes of all loaded models and engines (8GB ...); 0: none",
           group);
}

// "NAME=FILE", or a file, whose name is its own without the ending.
Result<std::pair<std::string, std::string>> named_model(const std::string& text) {
  const std::size_t equals = text.find('=');
  const bool has_name = equals != std::string::npos && equals > 0 && text.find('/') > equals;
  auto file = find_model_file(has_name ? text.substr(equals + 1) : text);
  if (!file) return tl::unexpected(file.error());
  std::string name = has_name ? text.substr(0, equals) : std::filesystem::path(*file).filename().string();
  if (const std::string ending = ".gguf"; !has_name && name.size() > ending.size() && name.ends_with(ending))
    name.resize(name.size() - ending.size());
  return std::make_pair(std::move(name), std::move(*file));
}

Status resolve_models(Serve& flags) {
  serve::ModelsOptions& models = flags.server.models;
  // What the policy and the drafters read: later nobody would see the sentence but in a log.
  if (Status right = flags.server.mixes.check(true); !right) return right;
  if (flags.models.empty()) {
    auto file = flags.model.resolve();
    if (!file) return tl::unexpected(file.error());
    flags.models.push_back(std::move(*file));
  }
  for (const std::string& text : flags.models) {
    auto model = named_model(text);
    if (!model) return tl::unexpected(model.error());
    models.files.push_back(std::move(*model));
  }
  auto load = flags.model.options();
  if (!load) return tl::unexpected(load.error());
  models.load = std::move(*load);
  models.memory_bytes = models.host.memory_bytes = flags.memory;
  return {};
}

Status resolve_network(Serve& flags) {
  for (const std::string& origin : flags.origins)
    if (origin != "*" && !serve::is_origin(origin))
      return fail(fmt::format("--cors {}: https://HOST, with a port or without, or * is wanted", origin));
  flags.server.routes.origins = flags.origins;
  return flags.server.http.validate();
}

Status resolve_engines(Serve& flags) {
  auto speculation = flags.speculation.resolve();
  if (!speculation) return tl::unexpected(speculation.error());
  auto engine = flags.engine.resolve(*speculation);
  if (!engine) return tl::unexpected(engine.error());
  serve::HostOptions& host = flags.server.models.host;
  engine->positions = host.engine.positions;
  engine->max_requests = flags.parallel;
  host.engine = *engine;
  flags.server.mixes = serve::Mixes(speculation->policy);
  for (const std::string& text : flags.drafters)
    if (Status added = flags.server.mixes.add(text); !added) return added;
  if (Status right = flags.server.mixes.check(false); !right) return right;
  flags.server.models.mix = flags.server.mixes.first();
  return {};
}

Status resolve_keys(Serve& flags) {
  serve::ApiKeys& keys = flags.server.routes.keys;
  for (const std::string& key : flags.keys)
    if (Status added = keys.add(key); !added)
      return fail(fmt::format("--api-key: {}", added.error().message));
  if (flags.key_file.empty()) return {};
  auto text = read_text(flags.key_file);
  if (!text) return tl::unexpected(text.error());
  return keys.add_lines(*text, flags.key_file);
}

Status read_settings(Serve& flags, serve::Settings& settings) {
  if (Status read = settings.read_environment(serve::environment_variables()); !read) return read;
  if (flags.config.empty()) return {};
  auto text = read_text(flags.config);
  if (!text) return tl::unexpected(text.error());
  return settings.read_file(*text, flags.config);
}

Result<int> run(Serve& flags, CLI::App& command) {
  serve::Settings settings(command, kPrefix, {"print-config"});
  if (Status read = read_settings(flags, settings); !read) return tl::unexpected(read.error());
  for (const auto resolve : {resolve_network, resolve_engines})  // which needs no files
    if (Status right = resolve(flags); !right) return tl::unexpected(right.error());
  if (flags.print_config) {
    say("{}\n", settings.print({"api-key", "config"}));
    return kOk;
  }
  for (const auto resolve : {resolve_models, resolve_keys})
    if (Status right = resolve(flags); !right) return tl::unexpected(right.error());
  flags.server.routes.version = COPPICE_VERSION;
  if (Status served = serve::serve(flags.server); !served) return tl::unexpected(served.error());
  return kOk;
}

}  // namespace

void add_serve(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<Serve>();
  CLI::App* command = app.add_subcommand(
      "serve", "models behind HTTP, for clients of OpenAI's and Ollama's protocols, and a page");
  command->add_option(
      "-m,--model", flags->models,
      "FILE or NAME=FILE, as often as there are models; the first is loaded at once and is the default, the "
      "others when somebody asks for them");
  command->add_option(
      "-d,--drafters", flags->drafters,
      "EXPRESSION or NAME=EXPRESSION (docs/drafters.md), repeatable: mixes that requests may ask for by "
      "name; the first is the default (lookup)");
  flags->model.add_machine(*command);
  flags->model.add_chat(*command, false);
  flags->engine.add(*command);
  flags->speculation.add(*command, false);
  add_network(*command, *flags);
  add_load(*command, *flags);
  command->add_option("--config", flags->config,
                      "a file with these options (JSON, as --print-config says them); what is typed wins, "
                      "then the environment");
  command->add_flag("--print-config", flags->print_config, "say what holds, without keys, and end");
  command->callback([flags, choose, command] { choose([flags, command] { return run(*flags, *command); }); });
}

}  // namespace coppice::app
