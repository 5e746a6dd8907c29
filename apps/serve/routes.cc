#include "routes.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "answering.h"
#include "http_text.h"
#include "page.h"

namespace coppice::serve {

struct RouteTable {
  using R = Routes;
  static constexpr Routes::Route kRows[] = {
      {"POST", "/v1/chat/completions", Api::chat_completions, false, &R::answer_chat},
      {"POST", "/v1/completions", Api::completions, false, &R::answer_completion},
      {"POST", "/v1/tokenize", Api::completions, false, &R::answer_tokenize},
      {"GET", "/v1/models", Api::completions, false, &R::answer_models},
      {"GET", "/v1/models/*", Api::completions, false, &R::answer_model},
      {"POST", "/api/chat", Api::ollama_chat, false, &R::answer_ollama_chat},
      {"POST", "/api/generate", Api::ollama_generate, false, &R::answer_ollama_generate},
      {"GET", "/api/tags", Api::ollama_chat, false, &R::answer_tags},
      {"GET", "/api/version", Api::ollama_chat, true, &R::answer_version},
      {"GET", "/health", Api::completions, true, &R::answer_health},
      {"GET", "/metrics", Api::completions, false, &R::answer_metrics},
      {"GET", "/openapi.json", Api::completions, true, &R::answer_openapi},
      {"GET", "/*", Api::completions, true, &R::answer_page},  // the page's files, and nothing else
  };
};

namespace {

// The page may load what this server has, and talk to it; nothing else, and nobody may frame it.
constexpr const char* kPagePolicy =
    "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'";

const PageFile* page_file(std::string_view path) {
  if (path.empty() || path[0] != '/') return nullptr;
  const std::string_view name = path == "/" ? std::string_view("index.html") : path.substr(1);
  for (const PageFile& file : page_files())
    if (file.name == name) return &file;
  return nullptr;
}

bool matches(const Routes::Route& route, std::string_view path) {
  const std::string_view pattern = route.path;
  if (pattern == "/*") return page_file(path) != nullptr;
  if (pattern.back() != '*') return pattern == path;
  const std::string_view stem = pattern.substr(0, pattern.size() - 1);
  return path.size() > stem.size() && path.substr(0, stem.size()) == stem;
}

// The row for a request, or none and the methods that the path has.
const Routes::Route* find_route(std::string_view method, std::string_view path, std::string& methods) {
  if (method == "HEAD") method = "GET";
  for (const Routes::Route& route : RouteTable::kRows) {
    if (!matches(route, path)) continue;
    if (method == route.method) return &route;
    methods = route.method == std::string_view("GET") ? "GET, HEAD, OPTIONS" : "POST, OPTIONS";
  }
  return nullptr;
}

// A reply whose head gets more fields.
class WithFields final : public HttpReply {
 public:
  WithFields(std::shared_ptr<HttpReply> reply, HttpFields fields)
      : reply_(std::move(reply)), fields_(std::move(fields)) {}
  void send(HttpHead head, std::string body) override {
    reply_->send(more(std::move(head)), std::move(body));
  }
  void begin(HttpHead head) override { reply_->begin(more(std::move(head))); }
  bool write(std::string_view bytes) override { return reply_->write(bytes); }
  void end() override { reply_->end(); }
  bool gone() const override { return reply_->gone(); }
  void when_gone(std::function<void()> told) override { reply_->when_gone(std::move(told)); }

 private:
  HttpHead more(HttpHead head) const {
    head.fields.insert(head.fields.end(), fields_.begin(), fields_.end());
    return head;
  }
  std::shared_ptr<HttpReply> reply_;
  HttpFields fields_;
};

ApiError error(int status, std::string message) {
  ApiError out;
  out.status = status;
  out.message = std::move(message);
  if (status >= 500) out.type = "server_error";
  if (status == 401) out.code = "invalid_api_key";
  return out;
}

Api shape_of(std::string_view path) {
  return path.substr(0, 5) == "/api/" ? Api::ollama_chat : Api::completions;
}

void send_json(HttpReply& reply, int status, std::string body) {
  reply.send({status, "application/json", {}}, std::move(body));
}

}  // namespace

bool Routes::is_allowed(std::string_view origin) const {
  return std::any_of(options_.origins.begin(), options_.origins.end(),
                     [&](const std::string& allowed) { return allowed == "*" || allowed == origin; });
}

bool Routes::is_own(const HttpRequest& request, std::string_view origin) const {
  const std::string host(request.field("host"));
  return origin == "http://" + host || origin == "https://" + host;
}

// What every answer carries, so that pages of other origins may read it only where the operator said so.
HttpFields Routes::common_fields(const HttpRequest& request) const {
  HttpFields fields{{"X-Content-Type-Options", "nosniff"}};
  const std::string_view origin = request.field("origin");
  if (!options_.origins.empty()) fields.emplace_back("Vary", "Origin");
  if (!origin.empty() && is_allowed(origin)) {
    fields.emplace_back("Access-Control-Allow-Origin", origin);
    fields.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  }
  if (draining_) fields.emplace_back("Connection", "close");
  return fields;
}

void Routes::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  Call call;
  call.reply = std::make_shared<WithFields>(std::move(reply), common_fields(request));
  call.request = std::move(request);
  call.shape = shape_of(call.request.path);
  std::string methods;
  const Route* route = find_route(call.request.method, call.request.path, methods);
  if (route == nullptr) return answer_without_route(call, methods);
  call.shape = route->shape;
  if (!admit(call, *route)) return;
  const std::string_view pattern = route->path;
  if (pattern.back() == '*' &&
      !percent_decode(std::string_view(call.request.path).substr(pattern.size() - 1), call.rest))
    return send_error(*call.reply, call.shape,
                      error(400, "the path has a % that is followed by no two hexadecimal digits"));
  (this->*route->answer)(std::move(call));
}

// A preflight of a browser, another method, or a path that is not there.
void Routes::answer_without_route(const Call& call, const std::string& methods) {
  const HttpRequest& request = call.request;
  if (request.method == "OPTIONS" && (request.path == "*" || !methods.empty())) {
    HttpHead head{204, "", {{"Allow", methods.empty() ? "GET, HEAD, POST, OPTIONS" : methods}}};
    if (is_allowed(request.field("origin"))) {
      head.fields.emplace_back("Access-Control-Allow-Methods", methods);
      head.fields.emplace_back("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id");
      head.fields.emplace_back("Access-Control-Max-Age", "600");
    }
    return call.reply->send(std::move(head), "");
  }
  if (methods.empty())
    return send_error(*call.reply, call.shape,
                      error(404, "there is nothing at this path; /openapi.json describes what there is"));
  HttpHead head{405, "application/json", {{"Allow", methods}}};
  call.reply->send(std::move(head),
                   error_body(call.shape, error(405, fmt::format("this path takes {}", methods))));
}

bool Routes::admit(const Call& call, const Route& route) {
  const HttpRequest& request = call.request;
  const auto refuse = [&](int status, const char* message) {
    send_error(*call.reply, call.shape, error(status, message));
    return false;
  };
  // Without keys, whoever can make a browser here talk to us could use the server: a name of a stranger's
  // that points to this machine, or a page of another origin.
  if (options_.loopback && !options_.keys.wanted() && !is_own_name(host_of(request.field("host"))))
    return refuse(421, "this server answers to localhost and to addresses; Host names neither");
  const std::string_view origin = request.field("origin");
  const bool posts = route.method == std::string_view("POST");
  if (posts && !origin.empty() && !is_own(request, origin) && !is_allowed(origin))
    return refuse(403, "pages of this origin may not ask here; --cors allows one");
  if (!route.open && !options_.keys.allow(request.field("authorization"))) {
    HttpHead head{401, "application/json", {{"WWW-Authenticate", "Bearer"}}};
    call.reply->send(
        std::move(head),
        error_body(
            call.shape,
            error(401, "an API key is wanted: Authorization: Bearer KEY, with one that this server knows")));
    return false;
  }
  const bool ollama =
      route.shape == Api::ollama_chat || route.shape == Api::ollama_generate;  // whose clients name no type
  if (posts && !ollama && media_type(request.field("content-type")) != "application/json")
    return refuse(415, "Content-Type: application/json is wanted");
  if (posts && draining_) return refuse(503, "the server is being shut down; ask another one");
  return true;
}

void Routes::finished(const HttpOutcome& outcome) {
  std::string methods;
  const Route* route = find_route(outcome.method, outcome.path, methods);
  const bool known =
      route != nullptr || outcome.method == "OPTIONS" || outcome.method == "POST" || outcome.method == "GET";
  http_.add(route != nullptr ? route->path : "other", known ? outcome.method : "other", outcome.status,
            outcome.lost);
  http_.bytes += outcome.bytes;
}

void Routes::answer_health(Call call) {
  const bool ready = models_.first_is_loaded();
  const char* status = draining_ ? "draining" : ready ? "ok" : "loading";
  HttpHead head{ready && !draining_ ? 200 : 503, "application/json", {{"Cache-Control", "no-store"}}};
  if (head.status == 503) head.fields.emplace_back("Retry-After", "1");
  call.reply->send(std::move(head), nlohmann::json({{"status", status}}).dump());
}

void Routes::answer_metrics(Call call) {
  MetricsText text;
  const std::vector<NamedMetrics> models = models_.metrics();
  write_models(text, models);
  write_http(text, http_, connections_ ? connections_() : 0);
  write_process(text);
  call.reply->send({200, "text/plain; version=0.0.4; charset=utf-8", {}}, text.take());
}

void Routes::answer_models(Call call) { send_json(*call.reply, 200, list_openai(models_.list())); }
void Routes::answer_tags(Call call) { send_json(*call.reply, 200, list_ollama(models_.list())); }
void Routes::answer_openapi(Call call) { send_json(*call.reply, 200, openapi_document()); }

void Routes::answer_model(Call call) {
  const std::string name = models_.known(call.rest);
  for (const ServedModel& model : models_.list())
    if (!name.empty() && model.name == name) return send_json(*call.reply, 200, show_openai(model));
  ApiError none = error(404, "there is no model of that name here; /v1/models lists those there are");
  none.param = "model";
  none.code = "model_not_found";
  send_error(*call.reply, call.shape, none);
}

void Routes::answer_version(Call call) {
  send_json(*call.reply, 200, nlohmann::json({{"version", options_.version}}).dump());
}

void Routes::answer_page(Call call) {
  const PageFile* file = page_file(call.request.path);
  const bool packed = call.request.field("accept-encoding").find("gzip") != std::string_view::npos;
  const std::string tag = fmt::format("\"{}{}\"", file->hash, packed ? "-gzip" : "");
  HttpHead head{200, std::string(file->type), {}};
  head.fields = {{"ETag", tag},
                 {"Cache-Control", "no-cache"},
                 {"Vary", "Accept-Encoding"},
                 {"Content-Security-Policy", kPagePolicy},
                 {"Referrer-Policy", "no-referrer"}};
  if (call.request.field("if-none-match").find(tag) != std::string_view::npos) {
    head.status = 304;
    head.content_type.clear();
    return call.reply->send(std::move(head), "");
  }
  if (packed) head.fields.emplace_back("Content-Encoding", "gzip");
  call.reply->send(std::move(head), std::string(packed ? file->gzip : file->plain));
}

}  // namespace coppice::serve
