// What each path answers. The table is in routes.cc; what a body means is behind api.h.
#pragma once

#include <coppice/coppice.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api.h"
#include "http.h"
#include "keys.h"
#include "metrics.h"
#include "mixes.h"
#include "models.h"
#include "workers.h"

namespace coppice::serve {

struct RoutesOptions {
  ApiKeys keys;                      // none: everybody may ask
  std::vector<std::string> origins;  // whose pages may ask; "*": everybody's
  bool loopback = true;              // the server listens on this machine's own address only
  std::string version;               // of coppice
};

class Routes {
 public:
  // All three live longer than the routes.
  Routes(RoutesOptions options, Models& models, const Mixes& mixes, Workers& workers)
      : options_(std::move(options)), models_(models), mixes_(mixes), workers_(workers) {}

  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply);  // HttpHooks::handle
  void finished(const HttpOutcome& outcome);  // HttpHooks::finished, for the counters
  void drain() { draining_ = true; }          // no new work from now on
  void count_connections(std::function<int()> connections) { connections_ = std::move(connections); }

  struct Call {
    HttpRequest request;
    std::shared_ptr<HttpReply> reply;
    Api shape = Api::completions;  // of errors
    std::string rest;              // of the path, behind a route that ends in *; decoded
  };
  struct Route {
    const char* method;
    const char* path;  // a * at its end stands for anything
    Api shape;
    bool open;  // needs no key
    void (Routes::*answer)(Call call);
  };

 private:
  bool is_allowed(std::string_view origin) const;
  bool is_own(const HttpRequest& request, std::string_view origin) const;
  HttpFields common_fields(const HttpRequest& request) const;
  bool admit(const Call& call, const Route& route);  // false: answered with an error
  void answer_without_route(const Call& call, const std::string& methods);

  void answer_health(Call call);
  void answer_metrics(Call call);
  void answer_models(Call call);
  void answer_model(Call call);
  void answer_tags(Call call);
  void answer_version(Call call);
  void answer_openapi(Call call);
  void answer_page(Call call);
  void answer_tokenize(Call call);
  void answer_chat(Call call);
  void answer_completion(Call call);
  void answer_ollama_chat(Call call);
  void answer_ollama_generate(Call call);

  // Generating goes through several threads: workers parse and tokenise, the model's thread answers.
  void generate(Call call, Api api);
  void parse(const std::shared_ptr<Call>& call, Api api);
  void submit(const Call& call, Api api, std::unique_ptr<Ask> ask, const Models::Host& host);
  void later(const std::shared_ptr<Call>& call, std::function<void()> work);

  const RoutesOptions options_;
  Models& models_;
  const Mixes& mixes_;
  Workers& workers_;
  HttpMetrics http_;
  std::function<int()> connections_;
  std::atomic<bool> draining_{false};
  friend struct RouteTable;
};

}  // namespace coppice::serve
