// The tiles of the instruction sets this machine may lack, with the instructions emulated in plain C++: the
// scalar product's bits for every kind, every number of rows in a tile, and the limits of the codes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/lanes_emulated.h"
#include "kernels/matmul_panels.h"
#include "kernels/matmul_tiles.h"
#include "kernels/tiles_emulated.h"

namespace coppice::core {
namespace {

template <int lanes, Product product, int rows, int panel_rows = rows>
struct Emulated : LanesEmulated<lanes> {
  static constexpr Product kProduct = product;
  static constexpr int kRows = rows;
  static constexpr int kPanelTile = panel_rows;
  static constexpr std::size_t kAhead = 1024;
};

using Matmul = void (*)(const MatmulTask&, const WeightsView&, int, int);
struct Logic {
  const char* name;
  Matmul matmul;
};
// As in matmul_avx2.cc, matmul_avxvnni.cc, matmul_avx512.cc, matmul_avx512vnni.cc and matmul_amx.cc.
constexpr Logic kLogics[] = {
    {"avx2", lanes_matmul<Emulated<8, Product::pairs, 4>>},
    {"avxvnni", lanes_matmul<Emulated<8, Product::dot4, 6>>},
    {"avx512", lanes_matmul<Emulated<16, Product::pairs, 8, 6>>},
    {"avx512vnni", lanes_matmul<Emulated<16, Product::dot4, 8, 6>>},
    {"amx", tiles_matmul<Emulated<16, Product::dot4, 8>, Tiles>},
};

enum class Codes { random, largest, smallest };

// A product of `groups` groups, `units` units of inputs and `rows` rows.
struct Case {
  Case(PackedKind kind, int groups, int units, int rows, Codes which)
      : weights{kind, groups * kGroupOutputs, units * packed_unit_inputs(kind), {}} {
    const int blocks = weights.inputs / kBlockInputs;
    std::mt19937 random(static_cast<unsigned>(100 * groups + 10 * blocks + rows));
    weights.data = std::move(*Buffer::make(weights.bytes()));
    for (std::size_t i = 0; i < weights.bytes(); ++i)
      weights.data.data()[i] = static_cast<std::byte>(random());
    const std::size_t unit = packed_unit_bytes(kind), scales = scales_at(shape_of(kind)),
                      subs = subs_at(shape_of(kind));
    for (std::size_t at = 0; at < weights.bytes(); at += unit) {
      if (which != Codes::random)
        std::memset(weights.data.data() + at, which == Codes::largest ? 255 : 0, scales);
      for (std::size_t i = at + scales + 1; i < at + subs; i += 2) weights.data.data()[i] &= std::byte{0xBB};
    }
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(blocks);
    for (std::size_t block = 0; block < count; ++block) {
      sums.push_back(0);
      half_sums.push_back(0);
      for (int i = 0; i < kBlockInputs; ++i) {
        const int code = which == Codes::random ? static_cast<int>(random() % 255) - 127 : i % 3 ? 127 : -127;
        codes.push_back(static_cast<std::int8_t>(which == Codes::random ? code : block % 2 ? 127 : -127));
        sums.back() += codes.back();
        if (i < 16) half_sums.back() += codes.back();
      }
      scales_.push_back(static_cast<float>(random() % 1000) * 1.7e-5f);
      scaled_sums.push_back(scales_.back() * static_cast<float>(sums.back()));
    }
    task.weights = &weights;
    task.q = {codes.data(), scales_.data(),   scaled_sums.data(),
              sums.data(),  half_sums.data(), weights.inputs};
    task.y_stride = static_cast<std::size_t>(groups * kGroupOutputs) + 3;
    task.rows = rows;
  }

  std::vector<float> run(Matmul matmul, int begin, int end) {
    std::vector<float> y(task.y_stride * static_cast<std::size_t>(task.rows), -1.0f);
    task.y = y.data();
    matmul(task, view_of(weights), begin, end);
    return y;
  }

  PackedMatrix weights;
  std::vector<std::int8_t> codes;
  std::vector<float> scales_, scaled_sums;
  std::vector<std::int32_t> sums, half_sums;
  MatmulTask task;
};

void scalar(const MatmulTask& task, const WeightsView&, int begin, int end) {
  matmul_scalar(task, begin, end);
}

void expect_the_scalar_bits(Case c, int begin, int end, const std::string& what) {
  const std::vector<float> expected = c.run(scalar, begin, end);
  for (const Logic& logic : kLogics) {
    const std::vector<float> got = c.run(logic.matmul, begin, end);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(std::memcmp(&expected[i], &got[i], 4), 0)
          << logic.name << ", " << what << ", at " << i << ": " << got[i] << ", not " << expected[i];
  }
}

template <PackedKind... kinds>
std::vector<PackedKind> list_of(KindList<kinds...>) {
  return {kinds...};
}
const std::vector<PackedKind> kKinds = list_of(QuantisedKinds());

TEST(TileLogic, GivesTheScalarBitsForEveryKindAndNumberOfRows) {
  for (const PackedKind kind : kKinds)
    for (int rows = 1; rows <= 64; rows += rows < 20 ? 1 : 11)
      expect_the_scalar_bits(
          Case(kind, 2, packed_unit_inputs(kind) == kBlockInputs ? 1 + rows % 4 : 1, rows, Codes::random), 0,
          2, "kind " + std::to_string(static_cast<int>(kind)) + ", rows " + std::to_string(rows));
}

// More rows than one panel parks, and more blocks than one holds.
TEST(TileLogic, GivesTheScalarBitsBeyondAPanel) {
  for (const PackedKind kind : kKinds) {
    const int units = packed_unit_inputs(kind) == kBlockInputs ? 11 : 2;
    for (const int rows : {12, 13, 65, 131})
      expect_the_scalar_bits(Case(kind, 1, units, rows, Codes::random), 0, 1, "panels");
  }
}

TEST(TileLogic, IsExactAtTheLimitsOfTheCodes) {
  for (const PackedKind kind : kKinds)
    for (const Codes codes : {Codes::largest, Codes::smallest})
      expect_the_scalar_bits(Case(kind, 1, 4, 7, codes), 0, 1, "limits");
}

TEST(TileLogic, WritesItsGroupsOnly) {
  for (const PackedKind kind : kKinds)
    expect_the_scalar_bits(Case(kind, 4, 2, 5, Codes::random), 1, 3, "groups");
}

}  // namespace
}  // namespace coppice::core
