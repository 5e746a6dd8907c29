// The reference attention: kv_block.h, position by position.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/isa_tables.h"
#include "kernels/kv_block.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

template <class T>
T load(const std::byte* base, std::size_t at) {
  T value;
  std::memcpy(&value, base + at * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* base, std::size_t at, T value) {
  std::memcpy(base + at * sizeof(T), &value, sizeof(T));
}

// One position of one kv head.
struct Place {
  const KvLayout* layout;
  const std::byte* head;  // of the head in its block
  std::size_t lane;

  float value(const std::byte* codes, std::size_t at, std::size_t scale_at) const {
    if (layout->type == CacheType::f32) return load<float>(codes, at);
    if (layout->type == CacheType::f16) return f16_to_f32(load<std::uint16_t>(codes, at));
    const std::byte* scales = codes + static_cast<std::size_t>(layout->head_dim) * 16;
    return static_cast<float>(load<std::int8_t>(codes, at)) *
           f16_to_f32(load<std::uint16_t>(scales, scale_at));
  }
  float key(int d) const {
    const auto at = static_cast<std::size_t>(d);
    return value(head, at * 16 + lane, at / kScaleDims * 16 + lane);
  }
  float val(int d) const {
    const auto at = static_cast<std::size_t>(d), dims = static_cast<std::size_t>(layout->head_dim);
    return value(head + layout->key_bytes(), lane * dims + at, lane * (dims / kScaleDims) + at / kScaleDims);
  }
};

Place place_of(const KvLayout& layout, const AttentionRow& row, int kv_head, int position) {
  const bool committed = position < row.committed;
  const int slot = committed ? 0 : row.slots[position - row.committed];
  const int block = committed ? row.table[position / 16] : slot / 16;
  const std::byte* at = committed ? row.blocks + static_cast<std::size_t>(block) * row.block_stride
                                  : row.scratch + static_cast<std::size_t>(block) * row.scratch_stride;
  return {&layout, at + layout.head_offset(kv_head),
          static_cast<std::size_t>(committed ? position % 16 : slot % 16)};
}

struct Softmax {
  float maximum;
  float sums[16];
  float* o;  // [head_dim]
};

// Positions [begin, end) of one segment for one query head.
void segment(const KvLayout& layout, const AttentionRow& row, int head, int begin, int end, float cap,
             Softmax& s) {
  const int kv_head = head / (layout.heads / layout.kv_heads);
  const float* q = row.q + static_cast<std::size_t>(head) * static_cast<std::size_t>(layout.head_dim);
  std::fill(s.sums, s.sums + 16, 0.0f);
  std::fill(s.o, s.o + layout.head_dim, 0.0f);
  float scores[kChunk];
  for (int first = begin, next; first < end; first = next) {
    next = std::min((first / kChunk + 1) * kChunk, end);
    const int count = next - first;
    for (int i = 0; i < count; ++i) {
      const Place place = place_of(layout, row, kv_head, first + i);
      scores[i] = 0.0f;
      for (int d = 0; d < layout.head_dim; ++d) scores[i] = std::fma(q[d], place.key(d), scores[i]);
      if (cap > 0.0f) scores[i] = cap - (cap + cap) / (1.0f + exp2_exact(scores[i]));
    }
    float maximum = *std::max_element(scores, scores + count);
    if (first > begin) {
      maximum = std::max(s.maximum, maximum);
      const float r = exp2_exact(s.maximum - maximum);
      for (float& sum : s.sums) sum *= r;
      for (int d = 0; d < layout.head_dim; ++d) s.o[d] *= r;
    }
    s.maximum = maximum;
    for (int i = 0; i < count; ++i) {
      const Place place = place_of(layout, row, kv_head, first + i);
      const float e = exp2_exact(scores[i] - maximum);
      s.sums[(first + i) % 16] += e;
      for (int d = 0; d < layout.head_dim; ++d) s.o[d] = std::fma(e, place.val(d), s.o[d]);
    }
  }
}

void merge(Softmax& a, const Softmax& b, int dims) {
  const float maximum = std::max(a.maximum, b.maximum);
  const float ra = exp2_exact(a.maximum - maximum), rb = exp2_exact(b.maximum - maximum);
  for (int i = 0; i < 16; ++i) a.sums[i] = std::fma(b.sums[i], rb, a.sums[i] * ra);
  for (int d = 0; d < dims; ++d) a.o[d] = std::fma(b.o[d], rb, a.o[d] * ra);
  a.maximum = maximum;
}

// One position of one head, `stride` values between its dimensions, scales `scale_stride` apart.
void store_head(const KvLayout& layout, const float* x, std::byte* codes, std::size_t stride,
                std::byte* scales, std::size_t scale_stride) {
  const auto dims = static_cast<std::size_t>(layout.head_dim);
  if (layout.type == CacheType::f32) {
    for (std::size_t d = 0; d < dims; ++d) store(codes, d * stride, x[d]);
  } else if (layout.type == CacheType::f16) {
    for (std::size_t d = 0; d < dims; ++d) store(codes, d * stride, f32_to_f16(x[d]));
  } else {
    for (std::size_t g = 0; g < dims / kScaleDims; ++g) {
      std::uint32_t bits = 0;
      for (std::size_t d = g * kScaleDims; d < (g + 1) * kScaleDims; ++d)
        bits = std::max(bits, std::bit_cast<std::uint32_t>(x[d]) & 0x7FFFFFFFu);
      const bool finite = bits < 0x7F800000u;
      const float step = std::bit_cast<float>(bits) / 127.0f;
      const std::uint16_t half = finite ? f32_to_f16(std::min(step, kScaleLimit)) : kBadScale;
      const float scale = f16_to_f32(half);
      store(scales, g * scale_stride, half);
      for (std::size_t d = g * kScaleDims; d < (g + 1) * kScaleDims; ++d) {
        const float code = !finite || scale == 0.0f ? 0.0f : std::clamp(x[d] / scale, -127.0f, 127.0f);
        store(codes, d * stride, static_cast<std::int8_t>(std::nearbyint(code)));
      }
    }
  }
}

}  // namespace

void attention_scalar(const KvLayout& layout, const AttentionTask& task) {
  const int group = layout.heads / layout.kv_heads;
  for (int query = task.query_begin; query < task.query_end; ++query) {
    const AttentionRow& row = task.rows[query / group % task.row_count];
    const int head = query / group / task.row_count * group + query % group;
    const int total = row.position + 1;
    Softmax all{}, next{};
    all.o = task.workspace;
    next.o = task.workspace + layout.head_dim;
    for (int begin = row.first, end; begin < total; begin = end) {
      end = std::min((begin / kSegment + 1) * kSegment, total);
      segment(layout, row, head, begin, end, task.cap, begin == row.first ? all : next);
      if (begin > row.first) merge(all, next, layout.head_dim);
    }
    const float sum = lane_sum(all.sums, 16);
    float* out = row.out + static_cast<std::size_t>(head) * static_cast<std::size_t>(layout.head_dim);
    for (int d = 0; d < layout.head_dim; ++d) out[d] = all.o[d] / sum;
  }
}

void store_kv_scalar(const KvLayout& layout, const float* k, const float* v, std::byte* block, int lane) {
  const auto dims = static_cast<std::size_t>(layout.head_dim), at = static_cast<std::size_t>(lane);
  const std::size_t size = layout.type == CacheType::f32 ? 4 : layout.type == CacheType::f16 ? 2 : 1;
  for (int head = 0; head < layout.kv_heads; ++head) {
    std::byte* keys = block + layout.head_offset(head);
    std::byte* values = keys + layout.key_bytes();
    const std::size_t codes = dims * 16 * size;
    const auto x = static_cast<std::size_t>(head) * dims;
    store_head(layout, k + x, keys + at * size, 16, keys + codes + at * 2, 16);
    store_head(layout, v + x, values + at * dims * size, 1, values + codes + at * (dims / kScaleDims) * 2, 1);
  }
}

}  // namespace coppice::core
