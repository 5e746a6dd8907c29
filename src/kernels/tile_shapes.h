// What LDTILECFG reads: the shapes of AMX's eight tile registers.
#pragma once

#include <cstdint>

namespace coppice::core {
namespace {

struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileShapes) == 64);

}  // namespace
}  // namespace coppice::core
