// What the pass of a model (workspace.h) and that of a draft head (head_pass.h) are built from: how their
// memory is laid out, what matmuls read and how they are split, and where a row's keys and values lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/kv_cache.h"
#include "model/row.h"
#include "model/weights.h"

namespace coppice::core {

constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

// Lays buffers out one behind the other, each on a 64-byte line: first counts, then hands out.
class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}
  template <class T>
  void take(T*& out, std::size_t count) {
    out = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += round_up(count * sizeof(T), 64);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

// What matmuls read: rows of activations as floats, and as codes where the weights are quantised.
struct Inputs {
  float* x = nullptr;                 // [rows, width], packed tightly
  std::int8_t* codes = nullptr;       // the same
  float* scales = nullptr;            // [rows, width / 32]
  float* scaled_sums = nullptr;       // the same
  std::int32_t* sums = nullptr;       // the same
  std::int32_t* half_sums = nullptr;  // the same

  void take(Arena& arena, std::size_t rows, int width);
  // One stretch (whole groups of 32): to codes, or only checked where the weights are floats. False: a value
  // is not finite.
  bool quantise(const Kernels& kernels, std::size_t at, int count, bool wanted) const;
};

struct Product {
  const WeightMatrix* weights = nullptr;
  float* y = nullptr;        // [rows, y_stride]
  std::size_t y_stride = 0;  // a multiple of 32
};

// Matmuls over the same inputs.
struct Products {
  const Inputs* inputs = nullptr;
  std::array<Product, 3> items{};
  int count = 0;
  // Each product is split by itself, so that a thread has the same outputs of all; else all groups of all
  // products are split together.
  bool side_by_side = false;
  void add(const WeightMatrix& weights, float* y, std::size_t y_stride) {
    items[static_cast<std::size_t>(count++)] = {&weights, y, y_stride};
  }
  MatmulTask task(int item, int rows) const;
};

// One thread of a pass.
struct PassThread {
  int thread;
  int threads;

  Span1 share_of(int total) const { return share(total, thread, threads); }
  Span1 share_of(const Products& products, int item) const;  // groups of one product
  // Its share of the first product, from `item` on, that it has a share of, as far as it is worth fetching
  // while what comes before is computed; no runs if there is none.
  WeightStretch first_weights(const Products& products, int item) const;
};

// Bytes of the next matmul's weights a thread fetches at the end of its own.
inline constexpr std::size_t kFetchAhead = 24 * 1024;

// Groups of a head's outputs that a thread makes of `rows` rows before it looks at them.
int head_stretch(std::size_t rows);

bool all_finite(const float* x, std::size_t n);

// What a row sees of its sequence: committed positions, then scratch slots.
struct RowView {
  int committed;
  int slots;
};
// Finds that. `new_rows`: rows the sequence commits in this pass, counted on for one that does. slots:
// [cache.slots()], those of the row's ancestors and its own, oldest first.
RowView view_of(const Row& row, KvCache& cache, int& new_rows, std::int32_t* slots);

}  // namespace coppice::core
