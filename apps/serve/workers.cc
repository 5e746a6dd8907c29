#include "workers.h"

#include <utility>

namespace coppice::serve {

Workers::Workers(int threads, std::size_t most_waiting) : most_waiting_(most_waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

Workers::~Workers() {
  {
    const std::lock_guard<std::mutex> held(mutex_);
    stops_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::post(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> held(mutex_);
    if (waiting_.size() >= most_waiting_) return false;
    waiting_.push_back(std::move(work));
  }
  news_.notify_one();
  return true;
}

void Workers::run() {
  std::unique_lock<std::mutex> held(mutex_);
  while (true) {
    news_.wait(held, [this] { return stops_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    auto work = std::move(waiting_.front());
    waiting_.pop_front();
    held.unlock();
    work();
    work = nullptr;
    held.lock();
  }
}

}  // namespace coppice::serve
