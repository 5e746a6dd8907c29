// One engine for many threads. The engine itself takes one caller at a time; here whoever waits for an answer
// lets it work, one pass for everybody, while the others sleep until something came for them. Knows no
// Python.
#pragma once

#include <coppice/coppice.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace coppice::python {

// What one pass brought for a request.
struct Piece {
  std::string text;  // complete characters
  std::vector<EmittedToken> tokens;
};

// A request, from submit() to its end. Its owner and the engine share it.
class Ticket {
 public:
  explicit Ticket(Request request, bool streams) : request_(std::move(request)), streams_(streams) {}

 private:
  friend class SharedEngine;
  Request request_;
  bool streams_;  // pieces are kept
  std::uint64_t id_ = 0;
  bool cancelled_ = false;
  std::deque<Piece> pieces_;
  std::optional<Result<Generation>> result_;
};

class SharedEngine {
 public:
  SharedEngine(Model model, Engine engine) : model_(std::move(model)), engine_(std::move(engine)) {}

  // Queued at once; that it is refused is its result.
  void submit(const std::shared_ptr<Ticket>& ticket);
  // Works or sleeps until the request has a piece (of one that streams) or its result; for one pass at most,
  // or a moment. True when it has.
  bool advance(Ticket& ticket);
  void cancel(Ticket& ticket);
  std::optional<Piece> take_piece(Ticket& ticket);
  // Once; null while it is under way.
  std::optional<Result<Generation>> take_result(Ticket& ticket);
  // Runs `work` while the engine rests: what uses the model's threads beside it.
  template <class Work>
  auto alone(Work&& work) {
    const Turn turn(*this);
    return work();
  }

  const Model& model() const { return model_; }
  const EngineOptions& options() const { return engine_.options(); }
  std::vector<std::string> sources() const { return engine_.sources(); }
  std::size_t bytes() const { return engine_.bytes(); }

 private:
  // The right to call the engine. Waits for it.
  class Turn {
   public:
    explicit Turn(SharedEngine& shared) : shared_(shared) {
      std::unique_lock lock(shared.mutex_);
      shared.changed_.wait(lock, [&] { return !shared.taken_; });
      shared.taken_ = true;
    }
    // The caller has set taken_.
    Turn(SharedEngine& shared, std::adopt_lock_t) : shared_(shared) {}
    ~Turn() {
      {
        const std::lock_guard lock(shared_.mutex_);
        shared_.taken_ = false;
      }
      shared_.changed_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SharedEngine& shared_;
  };

  static bool ready(const Ticket& ticket) { return !ticket.pieces_.empty() || ticket.result_.has_value(); }
  void pass();
  void admit();
  void collect();

  Model model_;
  Engine engine_;     // of whoever has the turn
  std::mutex mutex_;  // guards what follows, and every ticket
  std::condition_variable changed_;
  bool taken_ = false;
  std::vector<std::shared_ptr<Ticket>> incoming_, running_;
};

}  // namespace coppice::python
