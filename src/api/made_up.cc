#include "api/made_up.h"

#include <fmt/core.h>

#include <cstring>

#include "base/check.h"

namespace coppice {

void fill_moderate(std::byte* data, std::size_t bytes) {
  std::uint32_t state = 1;
  for (std::size_t at = 0; at + 4 <= bytes; at += 4) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t word = (((state >> 4) ^ (state << 12)) & 0x03FF03FFu) | 0x3C003C00u;
    std::memcpy(data + at, &word, 4);
  }
}

Result<Matrices> make_matrices(const KernelBenchOptions& o, core::PackedKind kind) {
  Matrices out;
  const int q = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
  const int shapes[][2] = {{q, o.hidden},
                           {kv, o.hidden},
                           {kv, o.hidden},
                           {o.hidden, q},
                           {o.feed_forward, o.hidden},
                           {o.feed_forward, o.hidden},
                           {o.hidden, o.feed_forward}};
  constexpr std::size_t kLine = 64;
  const auto size = [](const core::PackedMatrix& m) { return (m.bytes() + kLine - 1) / kLine * kLine; };
  std::size_t bytes = 0;
  for (int layer = 0; layer < o.layers; ++layer)
    for (const auto& [outputs, inputs] : shapes) {
      core::PackedMatrix matrix;
      matrix.kind = kind, matrix.outputs = outputs, matrix.inputs = core::whole_units(kind, inputs);
      bytes += size(matrix);
      out.multiply_adds += static_cast<double>(outputs) * matrix.inputs;
      out.all.push_back(std::move(matrix));
    }
  if (bytes > core::memory_available())
    return fail(fmt::format("the matrices need {} bytes of memory, but {} are available", bytes,
                            core::memory_available()));
  COPPICE_TRY(out.memory, core::Buffer::make(bytes));
  fill_moderate(out.memory.data(), bytes);
  std::size_t at = 0;
  for (core::PackedMatrix& matrix : out.all) {
    matrix.data = core::Buffer::part_of({out.memory.data() + at, matrix.bytes()});
    at += size(matrix);
  }
  return out;
}

}  // namespace coppice
