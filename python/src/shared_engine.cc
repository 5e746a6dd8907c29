#include "shared_engine.h"

#include <algorithm>
#include <chrono>

namespace coppice::python {
namespace {

constexpr auto kMoment = std::chrono::milliseconds(50);  // until a sleeper looks at signals again

}  // namespace

void SharedEngine::submit(const std::shared_ptr<Ticket>& ticket) {
  const std::lock_guard lock(mutex_);
  incoming_.push_back(ticket);
}

bool SharedEngine::advance(Ticket& ticket) {
  std::unique_lock lock(mutex_);
  if (ready(ticket)) return true;
  if (taken_) {
    changed_.wait_for(lock, kMoment, [&] { return !taken_ || ready(ticket); });
    return ready(ticket);
  }
  taken_ = true;
  lock.unlock();
  {
    const Turn turn(*this, std::adopt_lock);
    pass();
  }
  lock.lock();
  return ready(ticket);
}

void SharedEngine::cancel(Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  ticket.cancelled_ = true;
}

std::optional<Piece> SharedEngine::take_piece(Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  if (ticket.pieces_.empty()) return std::nullopt;
  Piece piece = std::move(ticket.pieces_.front());
  ticket.pieces_.pop_front();
  return piece;
}

std::optional<Result<Generation>> SharedEngine::take_result(Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  return std::exchange(ticket.result_, std::nullopt);
}

void SharedEngine::pass() {
  admit();
  engine_.step();
  collect();
}

// Hands over what was queued, and who is no longer wanted.
void SharedEngine::admit() {
  std::vector<std::shared_ptr<Ticket>> fresh;
  {
    const std::lock_guard lock(mutex_);
    fresh.swap(incoming_);
    for (const auto& ticket : running_)
      if (ticket->cancelled_) engine_.cancel(ticket->id_);
  }
  for (const auto& ticket : fresh) {
    Request request = std::move(ticket->request_);
    request.on_event = [this, &ticket = *ticket](const Event& event) {
      const std::lock_guard lock(mutex_);
      if (ticket.streams_ && (!event.tokens.empty() || !event.text.empty()))
        ticket.pieces_.push_back({std::string(event.text), {event.tokens.begin(), event.tokens.end()}});
      return !ticket.cancelled_;
    };
    auto id = engine_.submit(std::move(request));
    const std::lock_guard lock(mutex_);
    if (id) {
      ticket->id_ = *id;
      running_.push_back(ticket);
    } else {
      ticket->result_.emplace(tl::unexpected(std::move(id).error()));
    }
  }
}

void SharedEngine::collect() {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [&](const std::shared_ptr<Ticket>& ticket) {
    auto generation = engine_.take(ticket->id_);
    if (!generation) return false;
    ticket->result_.emplace(*std::move(generation));
    return true;
  });
}

}  // namespace coppice::python
