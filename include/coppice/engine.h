// The engine: requests in, tokens out, several per pass of the model. One thread at a time may call it.
#pragma once

#include <coppice/drafter.h>
#include <coppice/error.h>
#include <coppice/model.h>
#include <coppice/request.h>
#include <coppice/sampling.h>
#include <coppice/speculation.h>
#include <coppice/stats.h>
#include <coppice/token.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace coppice {

enum class KvType { f32, f16, q8_0 };

struct EngineOptions {
  int context = 0;  // tokens of prompt and answer together; 0: what the model was trained for, up to 4096
  int max_requests = 1;  // at once
  int chunk = 128;       // prompt tokens a pass, at most
  int max_waiting = 0;   // requests that may wait for a place; one more is refused. 0: any number
  int positions = 0;     // tokens the cache holds for all requests together; 0: max_requests times context
  // What the cache may take where positions is 0: it holds fewer tokens then, but one whole context always.
  // Requests for whom there is no room wait. 0: any number
  std::uint64_t cache_bytes = 0;
  KvType cache = KvType::f16;
  Speculation speculation;
  std::vector<NamedDrafter> custom_drafters;  // names that speculation.drafters may use
};

class Engine {
 public:
  // All memory is had here; the error names the option, the draft or the file that is wrong. The model lives
  // as long as its engines, which share its threads and take turns.
  static Result<Engine> make(const Model& model, const EngineOptions& options = {});
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // Runs one request to its end. What an earlier request left in the cache is reused where the prompt begins
  // alike. An error is a request refused; one that failed on the way has StopReason::failed and what came
  // until then.
  Result<Generation> generate(const Request& request);

  // Many at once: submit, then step() until nothing is active; take() what is finished.
  Result<std::uint64_t> submit(Request request);
  bool step();  // one pass for everybody; false when nothing is active
  void cancel(std::uint64_t request);
  std::optional<Generation> take(std::uint64_t request);

  const EngineOptions& options() const;      // as resolved
  std::vector<std::string> sources() const;  // names of the mix's drafters, in bit order
  std::size_t bytes() const;                 // memory of cache and working space

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice
