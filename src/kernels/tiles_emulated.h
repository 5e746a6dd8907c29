// AMX's tile registers in plain C++, instruction by instruction what tiles_amx.h is; like the CPU it stops at
// a shape it was not configured for. For tests.
#pragma once

#include <array>
#include <cstring>

#include "base/check.h"
#include "kernels/tile_shapes.h"

namespace coppice::core {
namespace {

class Tiles {
 public:
  void configure(const TileShapes& shapes) {
    COPPICE_CHECK(shapes.palette == 1 && shapes.start_row == 0);
    for (std::size_t i = 0; i < 16; ++i) {
      COPPICE_CHECK(i < 8 || (shapes.rows[i] == 0 && shapes.row_bytes[i] == 0));
      COPPICE_CHECK(shapes.rows[i] <= 16 && shapes.row_bytes[i] <= 64);
      COPPICE_CHECK((shapes.rows[i] == 0) == (shapes.row_bytes[i] == 0));
    }
    shapes_ = shapes, configured_ = true;
    for (auto& tile : bytes_) tile = {};
  }
  void release() { configured_ = false; }
  template <int tile>
  void zero() {
    check(tile);
    bytes_[tile] = {};
  }
  template <int tile>
  void load(const void* from, std::size_t stride) {
    check(tile);
    bytes_[tile] = {};
    for (std::size_t row = 0; row < shapes_.rows[tile]; ++row)
      std::memcpy(&bytes_[tile][64 * row], static_cast<const char*>(from) + row * stride,
                  shapes_.row_bytes[tile]);
  }
  template <int tile>
  void store(void* to, std::size_t stride) {
    check(tile);
    for (std::size_t row = 0; row < shapes_.rows[tile]; ++row)
      std::memcpy(static_cast<char*>(to) + row * stride, &bytes_[tile][64 * row], shapes_.row_bytes[tile]);
  }
  template <int sums, int a, int b>
  void dot() {
    check(sums), check(a), check(b);
    static_assert(sums != a && sums != b && a != b);
    COPPICE_CHECK(shapes_.rows[sums] == shapes_.rows[a] && shapes_.row_bytes[sums] == shapes_.row_bytes[b]);
    COPPICE_CHECK(shapes_.row_bytes[a] == 4 * shapes_.rows[b]);
    for (std::size_t m = 0; m < shapes_.rows[sums]; ++m)
      for (std::size_t n = 0; n < shapes_.row_bytes[sums] / 4u; ++n) {
        std::int32_t sum;
        std::memcpy(&sum, &bytes_[sums][64 * m + 4 * n], 4);
        for (std::size_t k = 0; k < shapes_.row_bytes[a]; ++k)
          sum += bytes_[a][64 * m + k] * bytes_[b][64 * (k / 4) + 4 * n + k % 4];
        std::memcpy(&bytes_[sums][64 * m + 4 * n], &sum, 4);
      }
  }

 private:
  void check(int tile) const { COPPICE_CHECK(configured_ && shapes_.rows[tile] != 0); }
  TileShapes shapes_;
  bool configured_ = false;
  std::array<std::array<std::int8_t, 1024>, 8> bytes_{};
};

}  // namespace
}  // namespace coppice::core
