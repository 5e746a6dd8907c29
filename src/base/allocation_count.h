// For tests: how often a program asked for memory. A test file that includes this replaces operator new for
// its whole test binary; any number of its files may (the definitions are weak, and all the same).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace coppice::core::testing {

inline std::atomic<bool> counting{false};
inline std::atomic<int> allocations{0};

// Counts the calls of operator new, by any thread, while it lives.
class AllocationCount {
 public:
  AllocationCount() : before_(allocations.load()) { counting = true; }
  ~AllocationCount() { counting = false; }
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  int so_far() const { return allocations.load() - before_; }

 private:
  int before_;
};

inline void* count_and_allocate(std::size_t bytes, std::size_t alignment) {
  if (counting.load()) allocations.fetch_add(1);
  const std::size_t whole = (bytes + alignment) / alignment * alignment;  // never 0
  void* memory = std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

inline constexpr std::size_t kPlainAlignment = alignof(std::max_align_t);

}  // namespace coppice::core::testing

// Not inlined: GCC would see free() meet new and warn.
#define COPPICE_REPLACED [[gnu::weak, gnu::noinline]]
COPPICE_REPLACED void* operator new(std::size_t bytes) {
  return coppice::core::testing::count_and_allocate(bytes, coppice::core::testing::kPlainAlignment);
}
COPPICE_REPLACED void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return coppice::core::testing::count_and_allocate(bytes, static_cast<std::size_t>(alignment));
}
COPPICE_REPLACED void* operator new[](std::size_t bytes) { return operator new(bytes); }
COPPICE_REPLACED void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return operator new(bytes, alignment);
}
COPPICE_REPLACED void operator delete(void* memory) noexcept { std::free(memory); }
COPPICE_REPLACED void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
COPPICE_REPLACED void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
COPPICE_REPLACED void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
COPPICE_REPLACED void operator delete[](void* memory) noexcept { std::free(memory); }
COPPICE_REPLACED void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
COPPICE_REPLACED void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
COPPICE_REPLACED void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
#undef COPPICE_REPLACED
