#include "kernels/kv_layout.h"

#include <cstring>

#include "kernels/kv_block.h"

namespace coppice::core {

std::size_t KvLayout::key_bytes() const {
  const auto values = static_cast<std::size_t>(kBlockPositions) * static_cast<std::size_t>(head_dim);
  switch (type) {
    case CacheType::f32:
      return values * 4;
    case CacheType::f16:
      return values * 2;
    case CacheType::q8_0:
      return values + values / kScaleDims * 2;
  }
  return 0;
}

std::size_t KvLayout::value_bytes() const { return key_bytes(); }

std::size_t KvLayout::block_bytes() const {
  const std::size_t bytes = head_offset(kv_heads);
  return (bytes + 63) / 64 * 64;
}

std::size_t attention_workspace(const KvLayout& layout) {
  return 2 * kMostQueries * static_cast<std::size_t>(layout.head_dim);  // outputs: merged, and of a segment
}

void copy_position(const KvLayout& layout, const std::byte* from_block, int from_lane, std::byte* to_block,
                   int to_lane) {
  const std::size_t size = layout.type == CacheType::f32 ? 4 : layout.type == CacheType::f16 ? 2 : 1;
  const auto dims = static_cast<std::size_t>(layout.head_dim);
  const std::size_t scales = layout.type == CacheType::q8_0 ? dims / kScaleDims : 0;
  const auto from = static_cast<std::size_t>(from_lane), to = static_cast<std::size_t>(to_lane);
  for (int head = 0; head < layout.kv_heads; ++head) {
    const std::byte* source = from_block + layout.head_offset(head);
    std::byte* target = to_block + layout.head_offset(head);
    for (std::size_t d = 0; d < dims; ++d)
      std::memcpy(target + (d * 16 + to) * size, source + (d * 16 + from) * size, size);
    std::size_t at = dims * 16 * size;  // key scales: [head_dim / 32][16]
    for (std::size_t g = 0; g < scales; ++g)
      std::memcpy(target + at + (g * 16 + to) * 2, source + at + (g * 16 + from) * 2, 2);
    at = layout.key_bytes();
    std::memcpy(target + at + to * dims * size, source + at + from * dims * size, dims * size);
    at += dims * 16 * size;  // value scales: [16][head_dim / 32]
    std::memcpy(target + at + to * scales * 2, source + at + from * scales * 2, scales * 2);
  }
}

}  // namespace coppice::core
