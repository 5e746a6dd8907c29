// The thread that owns the engines of one loaded model. Requests come in through a queue and what the engines
// bring goes out through listeners; a pass takes no lock of ours unless something is in the queue. Each pair
// of drafters and policy in use is an engine; they take turns, a pass each.
#pragma once

#include <coppice/coppice.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "api.h"
#include "metrics.h"
#include "mixes.h"

namespace coppice::serve {

struct HostOptions {
  EngineOptions engine;              // its drafters and policy are the default mix's
  int max_waiting = 64;              // requests beside those in work; one more is refused with 429
  int max_engines = 3;               // mixes in use at once
  double engine_idle_seconds = 300;  // after which an engine that is not the default one is freed
  double request_seconds = 600;      // from its arrival; then the answer ends where it is. 0: no limit
  std::uint64_t memory_bytes = 0;    // that there is for models and engines; 0: what is free
  std::uint64_t cache_bytes = 0;     // of an engine's cache, at most; 0: an eighth of that memory
};

// Who waits for an answer. Called on the host's thread, which it must not hold up.
class Listener {
 public:
  virtual ~Listener() = default;
  // The requests are accepted; `sources`: the names of the mix's drafters, in bit order.
  virtual void accepted(const std::vector<std::string>& sources) = 0;
  virtual bool event(int index,
                     const Event& event) = 0;  // of the job's request `index`; false: cancel all of them
  virtual void done(int index, Generation generation) = 0;
  virtual void finished() = 0;                     // all are done
  virtual void failed(const ApiError& error) = 0;  // instead of all that would have followed
};

struct Job {
  std::vector<Request> requests;  // at least one
  Mix mix;
  std::shared_ptr<Listener> listener;
  double arrived = 0;                   // seconds of the steady clock
  std::string prompt_field = "prompt";  // what errors call it: "messages" in a chat
};

class ModelHost {
 public:
  // Makes the engine of the default mix. The error is for the operator: it may name files.
  static Result<std::shared_ptr<ModelHost>> make(Model model, const HostOptions& options, const Mix& mix,
                                                 std::shared_ptr<ModelMetrics> metrics);
  ~ModelHost();  // jobs that are not done fail

  // Any thread. The error: 429, or 400 for a job that is larger than the queue.
  ApiResult<std::uint64_t> submit(Job job);
  void cancel(std::uint64_t job);
  int in_flight() const { return in_flight_.load(); }  // requests that are not done
  const Model& model() const { return model_; }
  const Mix& mix() const { return mix_; }
  std::size_t bytes() const;                                                  // of weights and engines
  std::int64_t positions() const { return metrics_->most_positions.load(); }  // of their caches

 private:
  struct Work;
  struct Slot {
    Mix mix;
    Engine engine;
    std::vector<std::string> sources;
    std::vector<std::unique_ptr<Work>> jobs;
    double idle_since = 0;
    int waiting_for_cache = 0;  // requests, after the last pass
    bool said_full = false;     // that its cache is full, to the log
  };
  struct Order {
    std::uint64_t id = 0;
    std::optional<Job> job;  // none: cancel
  };

  ModelHost(Model model, const HostOptions& options, const Mix& mix, std::shared_ptr<ModelMetrics> metrics);
  Result<std::unique_ptr<Slot>> make_slot(const Mix& mix) const;
  ApiResult<Slot*> slot_for(const Mix& mix);
  void push(Order order);
  void run();
  void take_orders();
  void begin(std::uint64_t id, Job job);
  ApiResult<void> submit_one(Slot& slot, Work& work, Request request);
  void forget(int requests);
  void stop(std::uint64_t id);
  void step(Slot& slot);
  bool hear(Work& work, std::size_t index, const Event& event);
  bool collect(Slot& slot);  // whether some request ended
  void end_request(Work& work, std::size_t index);
  void fail_jobs(Slot& slot, const ApiError& error);
  void free_idle_engines();
  void count_engines();
  void note_waiting(Slot& slot);
  void wait();

  Model model_;
  const HostOptions options_;
  const Mix mix_;
  const std::shared_ptr<ModelMetrics> metrics_;
  std::atomic<int> in_flight_{0};
  std::atomic<std::uint64_t> next_id_{1};
  std::vector<std::unique_ptr<Slot>> slots_;  // the first is the default mix's

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Order> orders_;            // guarded by mutex_
  std::atomic<bool> has_orders_{false};  // looked at before every pass
  std::atomic<bool> stops_{false};
  double told_seconds_ = 0;  // that listeners took in the pass at hand
  std::thread thread_;
};

std::int64_t cache_positions(const EngineOptions& options);  // of an engine's resolved options
double steady_seconds();

}  // namespace coppice::serve
