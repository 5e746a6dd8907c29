#include "model/pass_parts.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace coppice::core {
namespace {

// Bytes of logits of all rows that a thread makes before it looks at them: they stay in its L1 or L2.
constexpr std::size_t kStretchBytes = 64 * 1024;
// A stretch fetches the weights of the next while it runs (numerics 21), so it should not be short.
constexpr int kLeastGroups = 4;

}  // namespace

void Inputs::take(Arena& arena, std::size_t rows, int width) {
  const std::size_t count = rows * static_cast<std::size_t>(width);
  arena.take(x, count);
  arena.take(codes, count);
  arena.take(scales, count / kBlockInputs);
  arena.take(scaled_sums, count / kBlockInputs);
  arena.take(sums, count / kBlockInputs);
  arena.take(half_sums, count / kBlockInputs);
}

bool Inputs::quantise(const Kernels& kernels, std::size_t at, int count, bool wanted) const {
  const std::size_t group = at / kBlockInputs;
  if (!wanted) return all_finite(x + at, static_cast<std::size_t>(count));
  return kernels.quantize_row(
      x + at, {codes + at, scales + group, scaled_sums + group, sums + group, half_sums + group, count});
}

MatmulTask Products::task(int item, int rows) const {
  const Product& product = items[static_cast<std::size_t>(item)];
  const PackedMatrix& matrix = product.weights->packed;
  MatmulTask task;
  task.weights = &matrix;
  task.x = inputs->x;
  task.q = {inputs->codes, inputs->scales,    inputs->scaled_sums,
            inputs->sums,  inputs->half_sums, matrix.inputs};
  task.y = product.y;
  task.y_stride = product.y_stride;
  task.rows = rows;
  return task;
}

Span1 PassThread::share_of(const Products& products, int item) const {
  const auto groups = [&products](int i) -> int {
    const WeightMatrix* weights_of = products.items[static_cast<std::size_t>(i)].weights;
    return weights_of == nullptr ? 0 : weights_of->packed.groups();
  };
  if (products.side_by_side) return share_of(groups(item));
  int first = 0, total = 0;
  for (int i = 0; i < products.count; ++i) {
    first += i < item ? groups(i) : 0;
    total += groups(i);
  }
  const Span1 mine = share_of(total);
  return {std::clamp(mine.begin - first, 0, groups(item)), std::clamp(mine.end - first, 0, groups(item))};
}

WeightStretch PassThread::first_weights(const Products& products, int item) const {
  for (; item < products.count; ++item) {
    const Span1 mine = share_of(products, item);
    if (mine.begin < mine.end)
      return products.items[static_cast<std::size_t>(item)].weights->packed.stretch(mine.begin, mine.end,
                                                                                    kFetchAhead);
  }
  return {};
}

int head_stretch(std::size_t rows) {
  return std::max(kLeastGroups, static_cast<int>(kStretchBytes / (rows * kGroupOutputs * sizeof(float))));
}

bool all_finite(const float* x, std::size_t n) {
  std::uint32_t bad = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    bad |= static_cast<std::uint32_t>((bits & 0x7f800000u) == 0x7f800000u);
  }
  return bad == 0;
}

RowView view_of(const Row& row, KvCache& cache, int& new_rows, std::int32_t* slots) {
  if (row.slot == kCommitted) {
    const int expected = cache.length(row.sequence) + new_rows++;
    COPPICE_CHECK(row.position == expected && row.parent_slot == kCommitted);
    COPPICE_CHECK(cache.has_room(row.sequence, expected + 1));
    return {row.position + 1, 0};
  }
  COPPICE_CHECK(row.slot >= 0 && row.slot < cache.slots() && row.parent_slot < cache.slots());
  cache.set_parent(row.sequence, row.slot, row.parent_slot);
  int depth = 0;
  for (int slot = row.slot; slot != kCommitted; slot = cache.parent(row.sequence, slot)) {
    ++depth;
    COPPICE_CHECK(depth <= cache.slots());  // a slot is its own ancestor
  }
  int at = depth;
  for (int slot = row.slot; slot != kCommitted; slot = cache.parent(row.sequence, slot)) slots[--at] = slot;
  return {row.position + 1 - depth, depth};
}

}  // namespace coppice::core
