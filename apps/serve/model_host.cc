#include "model_host.h"

#include <coppice/tools.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "errors.h"
#include "json_body.h"

namespace coppice::serve {

namespace {

// An eighth: every mix in use has a cache of its own (max_engines), beside weights, drafts and the machine.
constexpr std::uint64_t kCacheShare = 8;

std::uint64_t cache_room(const HostOptions& options) {
  if (options.cache_bytes > 0) return options.cache_bytes;
  const std::uint64_t free = free_memory();
  const std::uint64_t ours = options.memory_bytes > 0 ? std::min(free, options.memory_bytes) : free;
  return std::max<std::uint64_t>(1, ours / kCacheShare);
}

// The field of a request that leaves tokens out of the draw; empty: none does.
std::string narrowed_by(const Sampling& sampling) {
  if (sampling.grammar) return "grammar";
  return sampling.banned.empty() && sampling.logit_bias.empty() ? "" : "logit_bias";
}

// By its one writer.
void add(std::atomic<double>& sum, double seconds) { sum.store(sum.load() + seconds); }

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::int64_t cache_positions(const EngineOptions& options) {
  return options.positions > 0 ? options.positions : std::int64_t{options.max_requests} * options.context;
}

// A job while the host works on it.
struct ModelHost::Work {
  struct One {
    std::uint64_t id = 0;  // the engine's
    bool running = false, done = false;
    std::int64_t positions = 0;  // of the cache
    std::int64_t prompt = 0;     // tokens
    double last = -1;            // when tokens came
    std::string narrowed;        // the field that leaves tokens out; empty: none
  };
  std::uint64_t id = 0;
  std::shared_ptr<Listener> listener;
  std::string prompt_field;
  double arrived = 0;
  std::vector<One> requests;
  std::size_t left = 0;
  bool failed = false;  // the listener has been told and hears nothing more
};

ModelHost::ModelHost(Model model, const HostOptions& options, const Mix& mix,
                     std::shared_ptr<ModelMetrics> metrics)
    : model_(std::move(model)), options_(options), mix_(mix), metrics_(std::move(metrics)) {}

Result<std::shared_ptr<ModelHost>> ModelHost::make(Model model, const HostOptions& options, const Mix& mix,
                                                   std::shared_ptr<ModelMetrics> metrics) {
  std::shared_ptr<ModelHost> host(new ModelHost(std::move(model), options, mix, std::move(metrics)));
  auto slot = host->make_slot(mix);
  if (!slot) return tl::unexpected(slot.error());
  host->slots_.push_back(std::move(*slot));
  host->count_engines();
  host->thread_ = std::thread([raw = host.get()] { raw->run(); });
  return host;
}

ModelHost::~ModelHost() {
  stops_ = true;
  push({});
  if (thread_.joinable()) thread_.join();
  metrics_->engines = metrics_->bytes = metrics_->most_positions = 0;
}

Result<std::unique_ptr<ModelHost::Slot>> ModelHost::make_slot(const Mix& mix) const {
  EngineOptions options = options_.engine;
  options.speculation.drafters = mix.drafters;
  options.speculation.policy = mix.policy;
  options.cache_bytes = cache_room(options_);
  if (mix.drafters != mix_.drafters) options.speculation.prior.clear();  // it was made for that mix
  auto engine = Engine::make(model_, options);
  if (!engine) return tl::unexpected(engine.error());
  auto sources = engine->sources();
  return std::unique_ptr<Slot>(new Slot{mix, std::move(*engine), std::move(sources), {}, steady_seconds()});
}

std::size_t ModelHost::bytes() const { return static_cast<std::size_t>(metrics_->bytes.load()); }

ApiResult<std::uint64_t> ModelHost::submit(Job job) {
  const int wanted = static_cast<int>(job.requests.size());
  const int most = options_.engine.max_requests + options_.max_waiting;
  if (wanted > most) {
    return tl::unexpected(invalid(
        "", fmt::format("this asks for {} answers at once; this server takes {} at most", wanted, most)));
  }
  if (in_flight_.fetch_add(wanted) + wanted > most) {
    in_flight_ -= wanted;
    metrics_->refused += static_cast<std::uint64_t>(wanted);
    return tl::unexpected(queue_full(metrics_->waiting_for_cache > 0));
  }
  metrics_->waiting += wanted;
  const std::uint64_t id = next_id_.fetch_add(1);
  push({id, std::move(job)});
  return id;
}

void ModelHost::cancel(std::uint64_t job) { push({job, std::nullopt}); }

void ModelHost::push(Order order) {
  {
    const std::lock_guard<std::mutex> held(mutex_);
    orders_.push_back(std::move(order));
    has_orders_.store(true, std::memory_order_release);
  }
  news_.notify_one();
}

void ModelHost::run() {
  while (!stops_) {
    const double start = steady_seconds();
    if (has_orders_.load(std::memory_order_acquire)) take_orders();
    bool busy = false;
    for (auto& slot : slots_) {
      if (slot->jobs.empty()) continue;
      busy = true;
      step(*slot);
    }
    if (slots_.size() > 1) free_idle_engines();
    if (busy) {
      add(metrics_->thread_seconds, steady_seconds() - start);
    } else {
      wait();
    }
  }
  take_orders();
  for (auto& slot : slots_) fail_jobs(*slot, unavailable("the server is being shut down"));
}

void ModelHost::wait() {
  std::unique_lock<std::mutex> held(mutex_);
  const auto called = [this] { return !orders_.empty(); };
  if (slots_.size() > 1) {
    news_.wait_for(held, std::chrono::duration<double>(1.0), called);
  } else {
    news_.wait(held, called);
  }
}

void ModelHost::take_orders() {
  std::vector<Order> orders;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    orders.swap(orders_);
    has_orders_.store(false, std::memory_order_relaxed);
  }
  for (Order& order : orders) {
    if (order.job) {
      begin(order.id, std::move(*order.job));
    } else {
      stop(order.id);
    }
  }
}

ApiResult<ModelHost::Slot*> ModelHost::slot_for(const Mix& mix) {
  const auto same =
      std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->mix == mix; });
  if (same != slots_.end()) return same->get();
  if (static_cast<int>(slots_.size()) >= options_.max_engines) {
    auto oldest = slots_.end();
    for (auto it = slots_.begin() + 1; it < slots_.end(); ++it)
      if ((*it)->jobs.empty() && (oldest == slots_.end() || (*it)->idle_since < (*oldest)->idle_since))
        oldest = it;
    if (oldest == slots_.end()) {
      ApiError error =
          unavailable("as many mixes of drafters and policy are in use as may be at once; try again later");
      error.param = "speculation";
      return tl::unexpected(error);
    }
    slots_.erase(oldest);
  }
  auto slot = make_slot(mix);
  if (!slot) {
    fmt::print(stderr, "[drafters {}: {}]\n", mix.name, slot.error().message);
    return tl::unexpected(
        invalid("speculation.drafters",
                fmt::format("\"{}\" cannot guess for this model; the server's log says why", mix.name)));
  }
  slots_.push_back(std::move(*slot));
  count_engines();
  return slots_.back().get();
}

// Everything about engines that /metrics says.
void ModelHost::count_engines() {
  std::int64_t positions = 0;
  std::size_t bytes = model_.info().weight_bytes;
  for (const auto& slot : slots_) {
    positions += cache_positions(slot->engine.options());
    bytes += slot->engine.bytes();
  }
  metrics_->engines = static_cast<std::int64_t>(slots_.size());
  metrics_->most_positions = positions;
  metrics_->bytes = static_cast<std::int64_t>(bytes);
}

void ModelHost::begin(std::uint64_t id, Job job) {
  const int wanted = static_cast<int>(job.requests.size());
  auto slot = slot_for(job.mix);
  if (!slot) {
    forget(wanted);
    return job.listener->failed(slot.error());
  }
  auto work = std::make_unique<Work>();
  work->id = id;
  work->listener = std::move(job.listener);
  work->prompt_field = std::move(job.prompt_field);
  work->arrived = job.arrived;
  work->requests.resize(job.requests.size());
  for (Request& request : job.requests) {
    auto submitted = submit_one(**slot, *work, std::move(request));
    if (submitted) continue;
    // All of them or none: those before it leave at the next pass.
    forget(wanted - static_cast<int>(work->left));
    work->failed = true;
    work->requests.resize(work->left);
    for (const Work::One& one : work->requests) (*slot)->engine.cancel(one.id);
    work->listener->failed(submitted.error());
    break;
  }
  if (!work->failed) work->listener->accepted((*slot)->sources);
  if (work->left > 0) (*slot)->jobs.push_back(std::move(work));
}

// Of requests that no engine has taken.
void ModelHost::forget(int requests) {
  in_flight_ -= requests;
  metrics_->waiting -= requests;
}

ApiResult<void> ModelHost::submit_one(Slot& slot, Work& work, Request request) {
  const std::size_t index = work.left;
  work.requests[index].prompt = static_cast<std::int64_t>(request.prompt.size());
  work.requests[index].narrowed = narrowed_by(request.sampling);
  if (const int context = slot.engine.options().context; static_cast<int>(request.prompt.size()) >= context)
    return tl::unexpected(context_exceeded(request.prompt.size(), context, work.prompt_field));
  const double waited = steady_seconds() - work.arrived;
  if (request.timeout_seconds <= 0 && options_.request_seconds > 0)
    request.timeout_seconds = std::max(options_.request_seconds - waited, 1e-3);
  // Where nobody guesses, a budget of guesses is no mistake.
  if (slot.engine.options().speculation.nodes == 0) request.nodes.reset();
  request.on_event = [this, &work, index](const Event& event) { return hear(work, index, event); };
  auto id = slot.engine.submit(std::move(request));
  if (!id) {
    return tl::unexpected(invalid("", id.error()));
  }
  work.requests[index].id = *id;
  ++work.left;
  return {};
}

void ModelHost::stop(std::uint64_t id) {
  for (auto& slot : slots_)
    for (auto& work : slot->jobs)
      if (work->id == id)
        for (const Work::One& one : work->requests)
          if (!one.done) slot->engine.cancel(one.id);
}

void ModelHost::step(Slot& slot) {
  try {
    const double start = steady_seconds();
    told_seconds_ = 0;
    slot.engine.step();
    add(metrics_->engine_seconds, steady_seconds() - start - told_seconds_);
    // Where somebody ended there is a place that the next pass fills: only then it is clear who waits for
    // what.
    if (!collect(slot) || slot.jobs.empty()) note_waiting(slot);
  } catch (const std::exception& error) {
    // Nobody knows what state the engine is in: another takes its place, or, where that cannot be had, the
    // process ends and whoever watches over it starts it again.
    fmt::print(stderr, "[{}; memory is out, or this is a bug of ours]\n", error.what());
    fail_jobs(slot, server_error());
    auto fresh = make_slot(slot.mix);
    if (!fresh) {
      fmt::print(stderr, "[no engine can be made any more: {}]\n", fresh.error().message);
      std::abort();
    }
    slot.engine = std::move((*fresh)->engine);
  }
}

// Who waits though there are places, waits for room in the cache: the operator should know, once.
void ModelHost::note_waiting(Slot& slot) {
  int running = 0, waiting = 0;
  for (const auto& work : slot.jobs)
    for (const Work::One& one : work->requests)
      if (!one.done) ++(one.running ? running : waiting);
  const EngineOptions& options = slot.engine.options();
  const int for_room = running < options.max_requests ? waiting : 0;
  metrics_->waiting_for_cache += for_room - slot.waiting_for_cache;
  slot.waiting_for_cache = for_room;
  if (for_room == 0 || std::exchange(slot.said_full, true)) return;
  fmt::print(stderr,
             "[the cache is full: its {} tokens are promised to those in work ({}), and others wait ({}); "
             "--cache-memory or --positions makes it larger]\n",
             cache_positions(options), running, for_room);
}

// What one pass brought for one request.
bool ModelHost::hear(Work& work, std::size_t index, const Event& event) {
  Work::One& one = work.requests[index];
  if (work.failed) return false;
  const double now = steady_seconds();
  if (!one.running) {
    one.running = true;  // its first pass
    --metrics_->waiting;
    ++metrics_->running;
    metrics_->queue.observe(now - work.arrived);
    metrics_->positions += one.prompt;
    one.positions = one.prompt;
  }
  if (!event.tokens.empty()) {
    const std::size_t count = event.tokens.size();
    if (one.last < 0) {
      metrics_->first_token.observe(now - work.arrived);
    } else {
      metrics_->between_tokens.observe((now - one.last) / static_cast<double>(count), count);
    }
    one.last = now;
    one.positions += static_cast<std::int64_t>(count);
    metrics_->positions += static_cast<std::int64_t>(count);
  }
  const bool wanted = work.listener->event(static_cast<int>(index), event);
  told_seconds_ += steady_seconds() - now;
  return wanted;
}

void ModelHost::end_request(Work& work, std::size_t index) {
  Work::One& one = work.requests[index];
  one.done = true;
  --work.left;
  --in_flight_;
  if (one.running) {
    --metrics_->running;
  } else {
    --metrics_->waiting;
  }
  metrics_->positions -= one.positions;
}

bool ModelHost::collect(Slot& slot) {
  bool ended = false;
  for (auto& work : slot.jobs) {
    bool stopped = false;
    for (std::size_t i = 0; i < work->requests.size(); ++i) {
      if (work->requests[i].done) continue;
      auto generation = slot.engine.take(work->requests[i].id);
      if (!generation) continue;
      ended = true;
      end_request(*work, i);
      metrics_->add(*generation);
      metrics_->whole.observe(steady_seconds() - work->arrived);
      stopped = stopped || generation->stop == StopReason::cancelled;
      if (work->failed) continue;
      if (generation->stop == StopReason::failed) {
        const ApiError why = failure(work->requests[i].narrowed, *generation);
        if (why.status >= 500) fmt::print(stderr, "[a request failed: {}]\n", generation->error);
        work->failed = stopped = true;
        work->listener->failed(why);
      } else {
        work->listener->done(static_cast<int>(i), std::move(*generation));
      }
    }
    if (stopped)  // nobody waits for the others any more
      for (const Work::One& one : work->requests)
        if (!one.done) slot.engine.cancel(one.id);
    if (work->left == 0 && !work->failed) work->listener->finished();
  }
  std::erase_if(slot.jobs, [](const auto& work) { return work->left == 0; });
  if (slot.jobs.empty()) slot.idle_since = steady_seconds();
  return ended;
}

// The engine is not asked again afterwards.
void ModelHost::fail_jobs(Slot& slot, const ApiError& error) {
  for (auto& work : slot.jobs) {
    for (std::size_t i = 0; i < work->requests.size(); ++i)
      if (!work->requests[i].done) end_request(*work, i);
    if (!work->failed) work->listener->failed(error);
  }
  slot.jobs.clear();
  note_waiting(slot);
}

void ModelHost::free_idle_engines() {
  const double before = steady_seconds() - options_.engine_idle_seconds;
  const std::size_t there = slots_.size();
  for (std::size_t i = slots_.size(); i-- > 1;)
    if (slots_[i]->jobs.empty() && slots_[i]->idle_since < before)
      slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(i));
  if (slots_.size() != there) count_engines();
}

}  // namespace coppice::serve
