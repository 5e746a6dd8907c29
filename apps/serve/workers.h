// Threads for what takes longer than the transport may wait: reading JSON, templates, tokenizing, grammars.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace coppice::serve {

class Workers {
 public:
  Workers(int threads, std::size_t most_waiting);
  ~Workers();  // what waits is done first
  // Any thread. False: as many wait as may.
  bool post(std::function<void()> work);

 private:
  void run();

  const std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_
  bool stops_ = false;                         // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace coppice::serve
