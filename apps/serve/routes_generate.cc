// The routes that ask a model.
#include <fmt/core.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <utility>

#include "answering.h"
#include "errors.h"
#include "json_body.h"
#include "routes.h"

namespace coppice::serve {
namespace {

constexpr std::size_t kFingerprintDigits = 12;

const ServedModel* served(const Models& models, const std::string& name) {
  for (const ServedModel& model : models.list())
    if (model.name == name) return &model;
  return nullptr;
}

AnswerContext context_of(const std::string& id, const ServedModel& model, const Mix& mix,
                         const std::vector<Request>& requests) {
  AnswerContext context;
  context.id = id;
  context.model = model.name;
  context.created = std::time(nullptr);
  context.drafters = mix.name;
  context.policy = mix.shown_policy();
  context.fingerprint = "fp_" + model.hash.substr(0, kFingerprintDigits);
  for (const Request& request : requests) {
    context.prompt_tokens.push_back(static_cast<int>(request.prompt.size()));
    context.last_prompt_tokens.push_back(request.prompt.empty() ? kNoToken : request.prompt.back());
  }
  return context;
}

}  // namespace

void Routes::answer_chat(Call call) { generate(std::move(call), Api::chat_completions); }
void Routes::answer_completion(Call call) { generate(std::move(call), Api::completions); }
void Routes::answer_ollama_chat(Call call) { generate(std::move(call), Api::ollama_chat); }
void Routes::answer_ollama_generate(Call call) { generate(std::move(call), Api::ollama_generate); }

// On a worker. What fails there is answered; nothing gets out.
void Routes::later(const std::shared_ptr<Call>& call, std::function<void()> work) {
  const auto guarded = [call, work = std::move(work)] {
    try {
      if (!call->reply->gone()) work();
    } catch (const std::exception& error) {
      fmt::print(stderr, "[request {}: {}; this is a bug of ours]\n", call->request.id, error.what());
      send_error(*call->reply, call->shape, server_error());
    }
  };
  if (!workers_.post(guarded)) send_error(*call->reply, call->shape, queue_full(false));
}

void Routes::generate(Call call, Api api) {
  const auto shared = std::make_shared<Call>(std::move(call));
  later(shared, [this, shared, api] { parse(shared, api); });
}

void Routes::parse(const std::shared_ptr<Call>& call, Api api) {
  auto ask = Ask::parse(api, call->request.body);
  if (!ask) return send_error(*call->reply, api, ask.error());
  std::string().swap(call->request.body);
  const std::string name = (*ask)->model;
  // A std::function is copied: what cannot be lies behind a pointer that can.
  const auto kept = std::make_shared<std::unique_ptr<Ask>>(std::move(*ask));
  models_.with(name, [this, call, api, kept](const ApiResult<Models::Host>& host) {
    if (!host) return send_error(*call->reply, api, host.error());
    later(call, [this, call, api, kept, there = *host] { submit(*call, api, std::move(*kept), there); });
  });
}

void Routes::submit(const Call& call, Api api, std::unique_ptr<Ask> ask, const Models::Host& host) {
  auto mix = mixes_.choose(ask->speculation);
  if (!mix) return send_error(*call.reply, api, mix.error());
  if (!ask->speculation || !ask->speculation->drafters) {  // the model's own default
    mix->name = host->mix().name;
    mix->drafters = host->mix().drafters;
  }
  auto requests = ask->requests(host->model());
  if (!requests) return send_error(*call.reply, api, requests.error());
  const ServedModel* model = served(models_, models_.known(ask->model));
  const std::string id = (api == Api::chat_completions ? "chatcmpl-" : "cmpl-") + call.request.id;
  AnswerContext context = context_of(id, *model, *mix, *requests);
  Job job;
  job.requests = std::move(*requests);
  job.mix = *mix;
  job.arrived = call.request.arrived;
  if (api == Api::chat_completions || api == Api::ollama_chat) job.prompt_field = "messages";
  job.listener =
      std::make_shared<Answering>(api, std::move(ask), host->model(), std::move(context), call.reply);
  const auto submitted = host->submit(std::move(job));
  if (!submitted) return send_error(*call.reply, api, submitted.error());
  call.reply->when_gone([weak = std::weak_ptr<ModelHost>(host), id = *submitted] {
    if (const auto there = weak.lock()) there->cancel(id);
  });
}

void Routes::answer_tokenize(Call call) {
  const auto shared = std::make_shared<Call>(std::move(call));
  later(shared, [this, shared] {
    std::string name;
    if (const auto body = parse_bounded(shared->request.body); body && body->is_object()) {
      const auto model = body->find("model");
      if (model != body->end() && model->is_string()) name = model->get<std::string>();
    }
    models_.with(name, [this, shared](const ApiResult<Models::Host>& host) {
      if (!host) return send_error(*shared->reply, shared->shape, host.error());
      later(shared, [shared, there = *host] {
        auto body = tokenize(shared->request.body, there->model());
        if (!body) return send_error(*shared->reply, shared->shape, body.error());
        shared->reply->send({200, "application/json", {}}, std::move(*body));
      });
    });
  });
}

}  // namespace coppice::serve
