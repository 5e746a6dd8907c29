// A pool for passes: one call runs the same function on every thread, with barriers inside it. Workers spin
// for the next barrier or call (a pass has several hundred of them, microseconds apart) and go to sleep when
// nothing comes; where there are more runnable threads than cores they yield, so that a busy neighbour costs
// its share.
#pragma once

#include <memory>
#include <type_traits>

namespace coppice::core {

class ThreadPool {
 public:
  // `threads` >= 1, the caller's included: ThreadPool(1) starts none.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  // Runs body(thread) for thread = 0 .. size()-1 and returns when all have; the caller is thread 0. The
  // floating point environment of every thread is the default one meanwhile (round to nearest, no flush to
  // zero), and the caller's is restored. Does not allocate. One call at a time; a second caller waits.
  template <class Body>
  void run(Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_erased([](void* context, int thread) { (*static_cast<Plain*>(context))(thread); },
               const_cast<std::remove_const_t<Plain>*>(&body));
  }

  // Inside run(): returns when every thread has called it. What was written before is visible after.
  void barrier();

 private:
  void run_erased(void (*body)(void*, int), void* context);

  struct State;
  std::unique_ptr<State> state_;
};

// [begin, end) of `total` items for `thread` of `threads`, as even as can be.
struct Span1 {
  int begin;
  int end;
};
constexpr Span1 share(int total, int thread, int threads) {
  return {static_cast<int>(static_cast<long long>(total) * thread / threads),
          static_cast<int>(static_cast<long long>(total) * (thread + 1) / threads)};
}

}  // namespace coppice::core
