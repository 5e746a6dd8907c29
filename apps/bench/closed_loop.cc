#include "bench/closed_loop.h"

#include <algorithm>
#include <utility>

#include "bench/benches.h"
#include "terminal.h"

namespace coppice::app {
double Answered::tokens_per_second() const {
  const auto behind = static_cast<double>(generation.tokens.size()) - 1;
  return behind > 0 && whole > first_token ? behind / (whole - first_token) : 0;
}

ClosedLoop::ClosedLoop(Engine& engine, const LoadShape& shape, const RowCosts& costs)
    : engine_(engine),
      shape_(shape),
      costs_(costs),
      answers_(shape.prompts.size()),
      left_(shape.prompts.size()) {}

ClosedLoop::~ClosedLoop() {
  for (const Asked& asked : asked_) engine_.cancel(asked.id);
  while (engine_.step()) {
  }
  for (const Asked& asked : asked_) (void)engine_.take(asked.id);
}

double ClosedLoop::now() const { return seconds_ + (clock_seconds() - began_); }

Status ClosedLoop::ask() {
  Asked asked;
  asked.number = next_++;
  const std::size_t prompt = asked.number % shape_.prompts.size();
  Request request;
  request.prompt = shape_.prompts[prompt];
  request.sampling = shape_.sampling;
  request.sampling.stream = static_cast<std::uint32_t>(prompt);
  request.trace = true;  // for the rows
  request.on_event = [this, number = asked.number](const Event& event) { return hear(number, event); };
  asked.when = now();
  auto id = engine_.submit(std::move(request));
  if (!id) return tl::unexpected(id.error());
  asked.id = *id;
  asked_.push_back(asked);
  return {};
}

bool ClosedLoop::hear(std::size_t number, const Event& event) {
  const auto asked =
      std::find_if(asked_.begin(), asked_.end(), [&](const Asked& a) { return a.number == number; });
  if (asked == asked_.end() || event.tokens.empty()) return !interrupted();
  tokens_ += event.tokens.size();
  asked->last = now();
  if (asked->first < 0) asked->first = asked->last;
  if (event.tree != nullptr) rows_of_pass_ += event.tree->nodes.size();
  return !interrupted();
}

Status ClosedLoop::collect() {
  for (std::size_t i = 0; i < asked_.size();) {
    auto generation = engine_.take(asked_[i].id);
    if (!generation) {
      ++i;
      continue;
    }
    const Asked asked = asked_[i];
    asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(i));
    if (generation->stop == StopReason::failed) return fail(generation->error);
    if (asked.number >= answers_.size()) continue;
    answers_[asked.number] = {std::move(*generation), asked.first - asked.when, asked.last - asked.when};
    --left_;
  }
  return {};
}

Status ClosedLoop::pass() {
  while (static_cast<int>(asked_.size()) < shape_.at_once)
    if (Status said = ask(); !said) return said;
  rows_of_pass_ = 0;
  engine_.step();
  if (rows_of_pass_ > 0) {
    ++passes_;
    rows_ += rows_of_pass_;
    priced_ += costs_.seconds(static_cast<double>(rows_of_pass_));
  }
  return collect();
}

Status ClosedLoop::turn(int passes) {
  Status status;
  began_ = clock_seconds();
  for (int i = 0; i < passes && !done() && status && !interrupted(); ++i) status = pass();
  seconds_ = now();
  return status;
}

}  // namespace coppice::app
