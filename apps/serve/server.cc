#include "server.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "access_log.h"
#include "http_text.h"
#include "workers.h"

namespace coppice::serve {
namespace {

constexpr int kWorkers = 2;
constexpr std::size_t kMostParsing = 256;  // requests that wait for a worker
constexpr double kTickSeconds = 0.1;
constexpr int kEndedBySignal = 130;

std::string wrong_request(int status, const std::string& message) {
  ApiError error;
  error.status = status;
  error.message = message;
  if (status >= 500) error.type = "server_error";
  return error_body(Api::completions, error);
}

class Server {
 public:
  explicit Server(const ServerOptions& options) : options_(options) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    if (models_) models_->stop();
    workers_.reset();  // before what their work is about
  }

  Status start();
  Status run();

 private:
  void signalled();
  void tick();

  const ServerOptions& options_;
  AccessLog log_;
  std::unique_ptr<HttpServer> http_;  // outlives whoever still has a reply
  std::unique_ptr<Models> models_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Routes> routes_;
  bool draining_ = false;
  double drained_by_ = 0;
  std::string problem_;
};

Status Server::start() {
  auto log = AccessLog::open(options_.log);
  if (!log) return tl::unexpected(log.error());
  log_ = std::move(*log);
  auto models = Models::make(options_.models);
  if (!models) return tl::unexpected(models.error());
  models_ = std::move(*models);
  workers_ = std::make_unique<Workers>(kWorkers, kMostParsing);
  RoutesOptions routes = options_.routes;
  routes.loopback = is_loopback(options_.http.host);
  routes_ = std::make_unique<Routes>(std::move(routes), *models_, options_.mixes, *workers_);
  HttpHooks hooks;
  hooks.handle = [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    routes_->handle(std::move(request), std::move(reply));
  };
  hooks.finished = [this](const HttpOutcome& outcome) {
    routes_->finished(outcome);
    log_.write(outcome);
  };
  hooks.wrong = wrong_request;
  auto http = HttpServer::listen(options_.http, std::move(hooks));
  if (!http) return tl::unexpected(http.error());
  http_ = std::move(*http);
  routes_->count_connections([this] { return http_->connections(); });
  return {};
}

Status Server::run() {
  const std::string& host = options_.http.host;
  const bool v6 = host.find(':') != std::string::npos;
  fmt::print(stderr, "coppice: listening on http://{}{}{}:{}\n", v6 ? "[" : "", host, v6 ? "]" : "",
             http_->port());
  if (!is_loopback(host) && !options_.routes.keys.wanted())
    fmt::print(stderr, "[whoever reaches this address may ask: --api-key wants a key of them]\n");
  models_->load_first();
  http_->on_signals([this] { signalled(); });
  http_->every(kTickSeconds, [this] { tick(); });
  http_->run();
  return problem_.empty() ? Status() : fail(problem_);
}

void Server::signalled() {
  if (draining_) std::_Exit(kEndedBySignal);
  draining_ = true;
  drained_by_ = steady_seconds() + options_.drain_seconds;
  routes_->drain();
  http_->close();
  const int left = models_->in_flight();
  if (left > 0)
    fmt::print(stderr, "coppice: {} request{} in work may end within {:.0f} s; once more ends at once\n",
               left, left == 1 ? "" : "s", options_.drain_seconds);
}

void Server::tick() {
  models_->expire();
  problem_ = models_->first_is_loaded() ? std::string() : models_->first_problem();
  const bool drained = draining_ && (http_->connections() == 0 || steady_seconds() >= drained_by_);
  if (drained || !problem_.empty()) http_->stop();
}

}  // namespace

Status serve(const ServerOptions& options) {
  Server server(options);
  if (Status started = server.start(); !started) return started;
  return server.run();
}

}  // namespace coppice::serve
