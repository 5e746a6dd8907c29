#include "quant/formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coppice::core {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Bytes that, put into a block, make values that are no numbers: infinite and other scales, mins and values.
struct Spoiler {
  std::size_t at;
  std::vector<std::byte> bytes;
};

// Every place where one of the patterns does so, told by unpack(): what find_nonfinite() must find.
std::vector<Spoiler> spoilers(const Format& format) {
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
  };
  // Infinite and no number: as f16, as bf16 or the upper half of f32, as a power of two in one byte.
  const std::vector<std::byte> patterns[] = {bytes({0x00, 0x7c}), bytes({0x01, 0xfe}), bytes({0x80, 0x7f}),
                                             bytes({0xc1, 0xff}), bytes({0xfd}),       bytes({0xff})};
  const auto size = static_cast<std::size_t>(format.block_bytes);
  std::vector<float> values(static_cast<std::size_t>(format.block_values));
  std::vector<Spoiler> found;
  for (const std::vector<std::byte>& pattern : patterns)
    for (std::size_t at = 0; at + pattern.size() <= size; ++at) {
      std::vector<std::byte> block(size, std::byte{0x77});  // finite in every format, and no code is zero
      std::copy(pattern.begin(), pattern.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
      format.unpack(block.data(), values.data(), format.block_values);
      if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
        found.push_back({at, pattern});
    }
  return found;
}

void spoil(const Spoiler& spoiler, std::byte* block) {
  std::copy(spoiler.bytes.begin(), spoiler.bytes.end(), block + spoiler.at);
}

// Random bytes, drawn again where a scale is not finite: any such block is one a file may hold.
std::vector<std::byte> random_blocks(const Format& format, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> blocks(row_bytes(format, count));
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
  for (std::int64_t at = format.find_nonfinite(blocks.data(), count); at >= 0;
       at = format.find_nonfinite(blocks.data(), count))
    for (int i = 0; i < format.block_bytes; ++i)
      blocks[row_bytes(format, at) + static_cast<std::size_t>(i)] = static_cast<std::byte>(random());
  return blocks;
}

class FormatsTest : public ::testing::TestWithParam<std::string> {
 protected:
  const Format& format() const { return *find_format(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(EachRow, FormatsTest, ::testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const Format& format : formats()) names.emplace_back(format.name);
                           return names;
                         }()),
                         [](const auto& row) { return row.param; });

TEST_P(FormatsTest, PackingIsLossless) {
  // Around the edges of vectors, halves, groups and slices.
  std::vector<int> widths = {32, 96, 256, 288};
  if (format().block_values == 256) widths = {256, 768};
  if (format().block_values == 1) widths.insert(widths.end(), {1, 5, 8, 31, 259});
  for (const int inputs : widths) {
    for (const int outputs : {1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 40, 63, 65}) {
      const std::int64_t count = static_cast<std::int64_t>(inputs) * outputs;
      const std::vector<std::byte> blocks = random_blocks(format(), count, 7);
      std::vector<float> expected(static_cast<std::size_t>(count));
      format().unpack(blocks.data(), expected.data(), count);
      const auto matrix = pack(format(), blocks.data(), outputs, inputs);
      ASSERT_TRUE(matrix);
      EXPECT_EQ(matrix->data.size(), matrix->bytes());
      EXPECT_TRUE(all_finite(*matrix, 0, matrix->groups()));
      std::vector<float> row(static_cast<std::size_t>(inputs));
      for (int output = 0; output < outputs; ++output) {
        unpack_row(*matrix, output, row.data());
        for (int k = 0; k < inputs; ++k)  // bits: -0 and 0 differ
          ASSERT_EQ(bits(row[static_cast<std::size_t>(k)]),
                    bits(expected[static_cast<std::size_t>(output * inputs + k)]))
              << outputs << " x " << inputs << ", output " << output << ", input " << k;
      }
    }
  }
}

// Whatever was there before, and for every byte: a file of packed weights must not depend on it.
TEST_P(FormatsTest, WhatLiesBeyondTheLastOutputIsZero) {
  const int inputs = std::max(64, format().block_values);
  for (const int outputs : {1, 18, 35}) {
    const std::vector<std::byte> blocks = random_blocks(format(), inputs * outputs, 8);
    auto matrix = pack(format(), blocks.data(), outputs, inputs);
    ASSERT_TRUE(matrix);
    const std::vector<std::byte> first(matrix->data.data(), matrix->data.data() + matrix->bytes());
    std::memset(matrix->data.data(), 0xff, matrix->bytes());
    pack_groups(format(), blocks.data(), *matrix, 0, matrix->groups());
    EXPECT_EQ(std::memcmp(matrix->data.data(), first.data(), first.size()), 0) << outputs;
    std::int64_t zeros = 0;
    for (std::size_t i = matrix->group_bytes() * static_cast<std::size_t>(outputs / 32); i < first.size();
         ++i)
      zeros += first[i] == std::byte{0};
    const int beyond = matrix->groups() * 32 - outputs;
    EXPECT_GE(zeros, static_cast<std::int64_t>(row_bytes(format(), inputs)) * beyond) << outputs;
  }
}

TEST_P(FormatsTest, PackingGroupByGroupGivesTheSameBytes) {
  const int inputs = std::max(64, format().block_values), outputs = 100;
  const std::vector<std::byte> blocks = random_blocks(format(), inputs * outputs, 8);
  const auto whole = pack(format(), blocks.data(), outputs, inputs);
  auto parts = pack(format(), blocks.data(), outputs, inputs);
  ASSERT_TRUE(whole && parts);
  std::memset(parts->data.data(), 0xff, parts->data.size());
  for (const int g : {3, 1, 0, 2}) pack_groups(format(), blocks.data(), *parts, g, g + 1);
  EXPECT_EQ(std::memcmp(parts->data.data(), whole->data.data(), whole->bytes()), 0);
}

TEST_P(FormatsTest, PackedSizeIsThatOfTheSource) {
  const auto matrix = pack(format(), random_blocks(format(), 256 * 32, 9).data(), 32, 256);
  const std::size_t source = row_bytes(format(), 256 * 32);
  EXPECT_GE(matrix->bytes(), source);
  for (const Format& row : formats()) {  // whose kind it is: the first's; another format may be smaller
    if (row.packed != format().packed) continue;
    if (row.name != format().name) return;
    break;
  }
  // A byte of scale (and min) instead of 6 bits, and MXFP4's scale of one byte as bf16.
  const double most = format().name == "MXFP4" ? 1.06 : format().name == "Q3_K" ? 1.04 : 1.03;
  EXPECT_LE(static_cast<double>(matrix->bytes()), most * static_cast<double>(source));
  if (format().block_values != 256 && format().name != "MXFP4") {
    EXPECT_EQ(matrix->bytes(), source);
  }
}

TEST_P(FormatsTest, QuantisingUnpackedValuesKeepsThem) {
  const auto values = normal_values(768, 10);
  std::vector<std::byte> blocks(row_bytes(format(), 768));
  format().quantize(values.data(), nullptr, blocks.data(), 768);
  std::vector<float> unpacked(768);
  format().unpack(blocks.data(), unpacked.data(), 768);
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  // Half a step between neighbouring codes, and what the search cuts off at the ends.
  const double bits_each = 8.0 * format().block_bytes / format().block_values;
  const float steps = bits_each < 3     ? 0.6f
                      : bits_each < 4.4 ? 0.35f
                      : bits_each < 5.1 ? 0.17f
                      : bits_each < 7   ? 0.08f
                                        : 0.005f;
  const float allowed = largest * steps;
  for (std::size_t i = 0; i < 768; ++i) ASSERT_NEAR(unpacked[i], values[i], allowed) << i;
}

TEST_P(FormatsTest, ANonFiniteScaleIsFoundWhereItIs) {
  const std::int64_t count = 2560;
  const std::vector<std::byte> blocks = random_blocks(format(), count, 11);
  EXPECT_EQ(format().find_nonfinite(blocks.data(), count), -1);
  ASSERT_GE(spoilers(format()).size(), 2u);
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{512}, std::int64_t{2304}})
    for (const Spoiler& spoiler : spoilers(format())) {
      std::vector<std::byte> bad = blocks;
      spoil(spoiler, bad.data() + row_bytes(format(), at));
      EXPECT_EQ(format().find_nonfinite(bad.data(), count), at) << "bytes at " << spoiler.at;
    }
}

TEST_P(FormatsTest, ANonFiniteScaleIsSeenInItsPackedGroupAndInNoOther) {
  const int inputs = 3 * std::max(32, format().block_values), outputs = 100;
  const std::vector<std::byte> good = random_blocks(format(), inputs * outputs, 12);
  bool last = false;
  for (const int row : {0, 31, 32, 77, 99}) {
    for (const Spoiler& spoiler : spoilers(format())) {
      std::vector<std::byte> blocks = good;
      last = !last;  // the last block of the row, or the first
      const std::int64_t at = static_cast<std::int64_t>(row) * inputs + (last ? inputs / 3 * 2 : 0);
      spoil(spoiler, blocks.data() + row_bytes(format(), at));
      const auto matrix = pack(format(), blocks.data(), outputs, inputs);
      ASSERT_TRUE(matrix);
      for (int group = 0; group < 4; ++group)
        EXPECT_EQ(all_finite(*matrix, group, group + 1), group != row / 32) << row << ", byte " << spoiler.at;
    }
  }
}

TEST_P(FormatsTest, QuantisingAnythingAtAllIsDefined) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values = normal_values(256, 12);
  values[3] = inf;
  values[35] = std::numeric_limits<float>::quiet_NaN();
  values[70] = -inf;
  for (std::size_t i = 96; i < 128; ++i) values[i] = (i % 2 == 0) ? 1e-44f : 0.0f;  // 1/d overflows
  std::vector<std::byte> blocks(row_bytes(format(), 256));
  format().quantize(values.data(), nullptr, blocks.data(), 256);  // no undefined conversion: sanitizers watch
}

TEST(Formats, AreFoundByTypeAndByNameInAnyCase) {
  for (const Format& format : formats()) {
    EXPECT_EQ(find_format(format.type), &format);
    EXPECT_EQ(find_format(format.name), &format);
  }
  EXPECT_EQ(find_format("q4_1"), find_format(3u));
  EXPECT_EQ(find_format("bf16"), find_format(30u));
  EXPECT_EQ(find_format("mxfp4"), find_format(39u));
  EXPECT_EQ(find_format(21u), nullptr);
  EXPECT_EQ(find_format("IQ3_S"), nullptr);
  EXPECT_EQ(find_format(""), nullptr);
}

TEST(Formats, IntegersAreReadButAreNoWeights) {
  const Format& format = *find_format("I64");
  EXPECT_EQ(find_format(27u), &format);
  EXPECT_FALSE(format.weights);
  for (const Format& row : formats()) EXPECT_TRUE(row.weights) << row.name;
  const float values[] = {0, -3, 49151, std::numeric_limits<float>::infinity()};
  std::vector<std::byte> bytes(row_bytes(format, 4));
  format.quantize(values, nullptr, bytes.data(), 4);
  float back[4];
  format.unpack(bytes.data(), back, 4);
  EXPECT_EQ(std::vector<float>(back, back + 4), (std::vector<float>{0, -3, 49151, 0}));
  EXPECT_FALSE(pack(format, bytes.data(), 1, 4)) << "no kernel multiplies by them";
}

TEST(Formats, ThePackedLayoutIsTheOneInTheHeader) {
  // 33 outputs, so that output 16 is lane 0 of the second half and output 32 begins a group; one block.
  const Format& format = *find_format("Q8_0");
  std::vector<std::byte> tensor(row_bytes(format, 32) * 33);
  for (std::size_t row = 0; row < 33; ++row) {
    std::byte* at = tensor.data() + row * 34;
    at[1] = static_cast<std::byte>(row);  // d
    for (std::size_t i = 0; i < 32; ++i) at[2 + i] = static_cast<std::byte>(row * 7 + i);
  }
  const auto matrix = pack(format, tensor.data(), 33, 32);
  ASSERT_EQ(matrix->groups(), 2);
  ASSERT_EQ(matrix->group_bytes(), 1088u);
  for (std::size_t row = 0; row < 33; ++row) {
    const std::byte* group = matrix->group(static_cast<int>(row / 32));
    const std::size_t output = row % 32, half = output / 16, lane = output % 16;
    EXPECT_EQ(std::to_integer<std::size_t>(group[1024 + 2 * output + 1]), row);
    for (std::size_t i = 0; i < 32; ++i)
      EXPECT_EQ(std::to_integer<std::uint8_t>(group[512 * half + 64 * (i / 4) + 4 * lane + i % 4]),
                static_cast<std::uint8_t>(row * 7 + i + 128));
  }
  for (std::size_t output = 1; output < 32; ++output)
    EXPECT_EQ(matrix->group(1)[1024 + 2 * output + 1], std::byte{0}) << "outputs beyond the last are zero";
}

TEST(Formats, NibblesLieInTheHeadersPlaces) {
  const Format& format = *find_format("Q4_1");
  std::vector<std::byte> row(20);
  for (std::size_t i = 0; i < 16; ++i) row[4 + i] = static_cast<std::byte>(i | (15 - i) << 4);
  row[0] = std::byte{0x11}, row[2] = std::byte{0x22};
  const auto matrix = pack(format, row.data(), 1, 32);
  ASSERT_EQ(matrix->group_bytes(), 640u);
  for (std::size_t j = 0; j < 4; ++j)
    for (std::size_t t = 0; t < 4; ++t)
      EXPECT_EQ(matrix->group(0)[64 * j + t], row[4 + 4 * j + t]);  // lane 0
  EXPECT_EQ(matrix->group(0)[512], std::byte{0x11});
  EXPECT_EQ(matrix->group(0)[576], std::byte{0x22});
}

TEST(Formats, AUnitOfAKFormatLiesInTheHeadersPlaces) {
  const Format& format = *find_format("Q6_K");
  std::vector<std::byte> row(210);
  row[1] = std::byte{1}, row[128 + 1] = std::byte{0x30};  // input 65: 48
  row[192 + 3] = std::byte{0xF0};                         // scale of inputs 48 .. 63: -16
  row[209] = std::byte{0x3C};                             // d: 1
  row[0] = std::byte{0x70};                               // input 64: 7
  const auto matrix = pack(format, row.data(), 1, 256);
  ASSERT_EQ(matrix->group_bytes(), 6720u);
  const std::byte* unit = matrix->group(0);
  const std::byte* block = unit + 2 * 768;     // of inputs 64 .. 95
  EXPECT_EQ(block[0], std::byte{0x07});        // nibbles, vector 0: input 64 low, 80 high
  EXPECT_EQ(block[256 + 1], std::byte{0x03});  // upper bits, vector 0, field 0: input 65 of lane 0
  EXPECT_EQ(unit[1], std::byte{0x01});         // input 1
  EXPECT_EQ(unit[8 * 768 + 1], std::byte{0x3C});
  EXPECT_EQ(unit[8 * 768 + 64 + 64 + 32], std::byte{0xF0});  // block 1, group 1
}

TEST(Formats, RowsThatAreNotWholeBlocksAreRefused) {
  const auto matrix = pack(*find_format("Q4_1"), nullptr, 4, 40);
  ASSERT_FALSE(matrix);
  EXPECT_EQ(matrix.error().message,
            "a Q4_1 matrix of 4 rows of 40 values cannot be packed: rows of a multiple of 32 values can");
}

TEST(Formats, OnesToWriteAreCheckedAgainstTheWidths) {
  const int widths[] = {256, 96};
  EXPECT_EQ(*format_to_write("q4_0", widths), find_format("Q4_0"));
  EXPECT_TRUE(format_to_write("nothing").error().message.starts_with(
      "nothing: there is no such format; there is F32, F16, Q4_0, "));
  EXPECT_TRUE(format_to_write("I64").error().message.starts_with("I64: there is no such format"));
  const int narrow[] = {256, 80};
  EXPECT_EQ(format_to_write("Q4_0", narrow).error().message,
            "Q4_0: its blocks have 32 values, and a matrix has 80 inputs, which is no multiple");
}

TEST(Halves, EveryF16SurvivesTheTripThroughF32) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(half));
    const bool nan = (half & 0x7fff) > 0x7c00;
    const std::uint32_t expected = nan ? half | 0x200 : half;
    ASSERT_EQ(f32_to_f16(value), expected) << half;
    ASSERT_EQ(std::isnan(value), nan) << half;
  }
}

TEST(Halves, F16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0x0000);
  EXPECT_EQ(f32_to_f16(std::nextafter(0x1p-25f, 1.0f)), 0x0001);
  EXPECT_EQ(f32_to_f16(0x1.8p-24f), 0x0002);
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(f32_to_f16(0x1.ffcp-15f + 0x1p-25f), 0x0400)
      << "rounding carries a denormal into the normal numbers";
}

TEST(Halves, Bf16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
  EXPECT_EQ(bits(bf16_to_f32(0x8001)), 0x80010000u);
}

#if defined(__x86_64__)
__attribute__((target("f16c,avx"))) bool agrees_with_hardware(std::uint32_t pattern) {
  const __m128 value = _mm_castsi128_ps(_mm_set1_epi32(static_cast<int>(pattern)));
  const auto half = static_cast<std::uint16_t>(_mm_extract_epi16(_mm_cvtps_ph(value, 0), 0));
  const auto widened = static_cast<std::uint32_t>(_mm_cvtsi128_si32(
      _mm_castps_si128(_mm_cvtph_ps(_mm_set1_epi16(static_cast<short>(pattern & 0xffff))))));
  return half == f32_to_f16(std::bit_cast<float>(pattern)) &&
         widened == bits(f16_to_f32(static_cast<std::uint16_t>(pattern & 0xffff)));
}

TEST(Halves, F16AgreesWithTheCpusOwnConversion) {
  if (!cpu_features().f16c) GTEST_SKIP() << "this CPU has no conversion of its own";
  for (std::uint32_t half = 0; half < 0x10000; ++half) ASSERT_TRUE(agrees_with_hardware(half));
  for (std::uint64_t pattern = 0; pattern < 0x100000000u; pattern += 997)
    ASSERT_TRUE(agrees_with_hardware(static_cast<std::uint32_t>(pattern))) << std::hex << pattern;
}
#endif

}  // namespace
}  // namespace coppice::core
