// Waiting in three steps, each for a different reason the others are late. Pauses: they are about to arrive
// (a pass has hundreds of barriers, microseconds apart). Then yields: on a machine with more runnable threads
// than cores the one we wait for may be waiting for our core. Then sleep: nobody is coming soon.
//
// How long to pause is learned: it doubles where waits turn out short and shrinks to next to nothing where
// they do not. Measured on two cores that 14 other runnable threads want too, in barriers (65 microseconds of
// work before each) per second of CPU time: one thread 15,200; two that pause 20,000 times before they sleep
// 1,700, the tenfold cost of a busy neighbour to a pool that spins; 1500 times 9,400; as learned 14,700.
#include "base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/check.h"
#include "base/os.h"

namespace coppice::core {
namespace {

constexpr int kMostPauses = 2048;  // 40 to 80 microseconds on the CPUs of 2015 to 2025
constexpr int kFewestPauses = 16;
constexpr double kSoon = 50e-6;           // a wait that pausing longer would have met
constexpr double kYieldSeconds = 300e-6;  // of yielding before sleep

// What this thread has learned: how many pauses the next wait begins with.
thread_local int learned_pauses = kMostPauses;

void waits_are_short() {
  learned_pauses = learned_pauses * 2 < kMostPauses ? learned_pauses * 2 : kMostPauses;
}
void waits_are_long() {
  learned_pauses = learned_pauses / 4 > kFewestPauses ? learned_pauses / 4 : kFewestPauses;
}

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace

struct ThreadPool::State {
  // A counter others wait on. Its own cache line: waiters poll it.
  struct alignas(64) Word {
    std::atomic<std::uint32_t> value{0};
  };

  Word call;   // + 1 at each run()
  Word phase;  // + 1 at each completed barrier
  alignas(64) std::atomic<int> arrived{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::mutex sleep_mutex;
  std::condition_variable sleep_condition;

  std::mutex run_mutex;                // one run() at a time
  void (*body)(void*, int) = nullptr;  // written before `call` moves; read after
  void* context = nullptr;
  bool stopping = false;  // the same
  int threads = 1;
  std::vector<std::thread> workers;

  void wait_past(const Word& word, std::uint32_t old);
  void advance(Word& word);
  void barrier();
  void work(int thread);
};

void ThreadPool::State::wait_past(const Word& word, std::uint32_t old) {
  for (int i = 0; i < learned_pauses; ++i) {
    if (word.value.load(std::memory_order_acquire) != old) return waits_are_short();
    pause();
  }
  const double start = seconds();
  for (double waited = 0; waited < kYieldSeconds; waited = seconds() - start) {
    if (word.value.load(std::memory_order_acquire) != old)
      return waited < kSoon ? waits_are_short() : waits_are_long();
    std::this_thread::yield();
  }
  waits_are_long();
  // Sequentially consistent on purpose, here and in advance(): either the waker sees the sleeper, or the
  // sleeper sees the new value. With anything weaker both can miss and the sleeper never wakes.
  std::unique_lock lock(sleep_mutex);
  sleepers.fetch_add(1);
  sleep_condition.wait(lock, [&] { return word.value.load() != old; });
  sleepers.fetch_sub(1);
}

void ThreadPool::State::advance(Word& word) {
  word.value.fetch_add(1);
  if (sleepers.load() == 0) return;
  { std::lock_guard lock(sleep_mutex); }
  sleep_condition.notify_all();
}

void ThreadPool::State::barrier() {
  if (threads == 1) return;
  const std::uint32_t now = phase.value.load(std::memory_order_acquire);
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == threads) {
    arrived.store(0, std::memory_order_relaxed);  // ordered before the next arrivals by the phase
    advance(phase);
  } else {
    wait_past(phase, now);
  }
}

void ThreadPool::State::work(int thread) {
  DefaultFloatScope scope;
  for (std::uint32_t seen = 0;; ++seen) {
    wait_past(call, seen);
    if (stopping) return;
    body(context, thread);
    barrier();
  }
}

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  COPPICE_CHECK(threads >= 1);
  State* state = state_.get();
  // Address space that stacks must not take where it is limited: what the threads work on needs some.
  constexpr std::size_t kLeftForWork = std::size_t{64} << 20;
  std::unique_ptr<std::byte[]> left(new (std::nothrow) std::byte[kLeftForWork]);
  try {
    state->workers.reserve(static_cast<std::size_t>(threads));
    for (int thread = 1; thread < threads; ++thread)
      state->workers.emplace_back([state, thread] { state->work(thread); });
  } catch (const std::system_error&) {
    // The system allows no more threads: those there are do the same work, with the same result.
  }
  left.reset();
  state->threads = 1 + static_cast<int>(state->workers.size());  // the workers read it after the first call
}

ThreadPool::~ThreadPool() {
  state_->stopping = true;
  state_->advance(state_->call);
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::size() const { return state_->threads; }

void ThreadPool::barrier() { state_->barrier(); }

void ThreadPool::run_erased(void (*body)(void*, int), void* context) {
  std::lock_guard lock(state_->run_mutex);
  DefaultFloatScope scope;
  state_->body = body;
  state_->context = context;
  if (state_->threads > 1) state_->advance(state_->call);
  body(context, 0);
  state_->barrier();
}

}  // namespace coppice::core
