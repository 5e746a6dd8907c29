// The quantisers that search: how near they come, what they leave as it is, and that they do it alike
// everywhere.
#include "quant/quantise.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/hash.h"

namespace coppice::core {
namespace {

// Sums of twelve: bell-shaped, and the same numbers with every library.
std::vector<float> bell(std::size_t count, unsigned seed, float spread = 0.02f) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    float sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<float>(random() >> 8) * 0x1p-24f;
    value = spread * sum;
  }
  return values;
}

// Importances from 1/64 to 64.
std::vector<float> uneven(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(1.0f, static_cast<int>(random() % 13) - 6);
  return values;
}

class Quantise : public ::testing::TestWithParam<std::string> {
 protected:
  const Format& format() const { return *find_format(std::string_view(GetParam())); }
  std::vector<std::byte> blocks(const std::vector<float>& values, const float* importance = nullptr) const {
    std::vector<std::byte> out(row_bytes(format(), static_cast<std::int64_t>(values.size())));
    format().quantize(values.data(), importance, out.data(), static_cast<std::int64_t>(values.size()));
    return out;
  }
  std::vector<float> unpacked(const std::vector<std::byte>& bytes) const {
    std::vector<float> out(bytes.size() / static_cast<std::size_t>(format().block_bytes) *
                           static_cast<std::size_t>(format().block_values));
    format().unpack(bytes.data(), out.data(), static_cast<std::int64_t>(out.size()));
    return out;
  }
  // The root of the mean square, beside that of the values.
  double error(const std::vector<float>& values, const std::vector<float>& rounded,
               const std::vector<float>& importance = {}) const {
    double off = 0, all = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double w = importance.empty() ? 1 : importance[i], x = values[i], y = rounded[i];
      off += w * (x - y) * (x - y);
      all += w * x * x;
    }
    return std::sqrt(off / all);
  }
};

INSTANTIATE_TEST_SUITE_P(EachRow, Quantise,
                         ::testing::Values("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS",
                                           "MXFP4"),
                         [](const auto& row) { return row.param; });

// What rounding gives whose scales are exact and follow from the extremes alone, in blocks as the format has
// them: no format has such scales, and the search must make up for that.
struct Naive {
  int block;
  float low, high;  // codes
  bool offset;
};
double naive_error(const Naive& naive, const std::vector<float>& values) {
  double off = 0, all = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(naive.block)) {
    const float* x = values.data() + begin;
    const auto [least, most] = std::minmax_element(x, x + naive.block);
    const float zero = naive.offset ? std::min(*least, 0.0f) : 0.0f;
    const float scale = naive.offset ? (std::max(*most, zero) - zero) / naive.high
                                     : quantise::extreme(x, naive.block) / naive.low;
    for (int i = 0; i < naive.block; ++i) {
      const float code = std::clamp(std::nearbyint((x[i] - zero) / scale), naive.low, naive.high);
      const double d = x[i] - (scale * code + zero);
      off += d * d;
      all += static_cast<double>(x[i]) * x[i];
    }
  }
  return std::sqrt(off / all);
}

TEST_P(Quantise, ComesNearerThanRoundingByTheExtremes) {
  const std::map<std::string, Naive> rows = {{"Q2_K", {16, 0, 3, true}},     {"Q3_K", {16, -4, 3, false}},
                                             {"Q4_K", {32, 0, 15, true}},    {"Q5_K", {32, 0, 31, true}},
                                             {"Q6_K", {16, -32, 31, false}}, {"IQ4_NL", {32, -8, 7, false}},
                                             {"IQ4_XS", {32, -8, 7, false}}, {"MXFP4", {32, -4, 3, false}}};
  // Below the naive rounding by so much: the fewer the bits, the more there is to choose.
  const std::map<std::string, double> most = {{"Q2_K", 0.90},   {"Q3_K", 0.95}, {"Q4_K", 0.93},
                                              {"Q5_K", 0.96},   {"Q6_K", 1.00}, {"IQ4_NL", 0.90},
                                              {"IQ4_XS", 0.90}, {"MXFP4", 0.80}};
  const std::vector<float> values = bell(256 * 64, 1);
  const double ours = error(values, unpacked(blocks(values)));
  EXPECT_LT(ours, most.at(GetParam()) * naive_error(rows.at(GetParam()), values));
}

TEST_P(Quantise, WhatMattersComesNearer) {
  const std::vector<float> values = bell(256 * 64, 2), importance = uneven(values.size(), 3);
  const double with = error(values, unpacked(blocks(values, importance.data())), importance);
  EXPECT_LT(with, 0.99 * error(values, unpacked(blocks(values)), importance));
}

TEST_P(Quantise, EqualImportancesAreNone) {
  const std::vector<float> values = bell(512, 4), importance(512, 0.25f), none(512, 0.0f);
  EXPECT_EQ(blocks(values, importance.data()), blocks(values));
  EXPECT_EQ(blocks(values, none.data()), blocks(values)) << "where nothing matters, all matters alike";
}

// How a format makes values: (d * scale) * code, less m * min where it has such.
struct Makes {
  int block;
  std::vector<float> codes;
  int least_scale, most_scale;
  bool minima;
};

Makes makes(const std::string& format) {
  const auto from = [](int low, int high) {
    std::vector<float> codes;
    for (int code = low; code <= high; ++code) codes.push_back(static_cast<float>(code));
    return codes;
  };
  const std::vector<float> table = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  if (format == "Q2_K") return {16, from(0, 3), 0, 15, true};
  if (format == "Q3_K") return {16, from(-4, 3), -32, 31, false};
  if (format == "Q4_K") return {32, from(0, 15), 0, 63, true};
  if (format == "Q5_K") return {32, from(0, 31), 0, 63, true};
  if (format == "Q6_K") return {16, from(-32, 31), -128, 127, false};
  if (format == "IQ4_NL") return {32, table, 1, 1, false};
  if (format == "IQ4_XS") return {32, table, -32, 31, false};
  return {32, {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12}, 1, 1, false};
}

// Any codes and scales, if only each block has its extreme codes and each 256 values their extreme scale.
std::vector<float> representable(const Makes& of, unsigned seed) {
  std::mt19937 random(seed);
  const float d = of.codes.back() == 12 ? 0x1p-9f : f16_to_f32(0x1c4d), m = f16_to_f32(0x180d);
  std::vector<float> values;
  const auto any = [&](int least, int most) {
    return static_cast<float>(least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1)));
  };
  for (int block = 0; block < 4096 / of.block; ++block) {
    const bool first = block % (256 / of.block) == 0, low = block / (256 / of.block) % 2 == 0;
    float scale = any(of.least_scale, of.most_scale), min = any(0, of.most_scale);
    if (first) scale = static_cast<float>(low && of.least_scale < 0 ? of.least_scale : of.most_scale);
    if (first) min = static_cast<float>(of.most_scale);
    for (int i = 0; i < of.block; ++i) {
      const float code = i == 0   ? of.codes.front()
                         : i == 1 ? of.codes.back()
                                  : of.codes[random() % of.codes.size()];
      values.push_back(of.minima ? (d * scale) * code - m * min : (d * scale) * code);
    }
  }
  return values;
}

TEST_P(Quantise, ValuesOfTheFormatComeBackAsTheyAre) {
  const std::vector<float> values = representable(makes(GetParam()), 5);
  const std::vector<float> again = unpacked(blocks(values));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(again[i], values[i]) << i;
}

TEST_P(Quantise, ZerosStayZeros) {
  const std::vector<float> zeros(256, 0.0f);
  for (const float value : unpacked(blocks(zeros))) EXPECT_EQ(value, 0.0f);
}

TEST_P(Quantise, OneValueEverywhereStays) {
  if (GetParam() == "MXFP4") GTEST_SKIP() << "its scales are powers of two";
  for (const float value : {0.75f, -0.75f, 300.0f, -2e-3f}) {
    const double near = std::fabs(value) > 0.01f ? 2e-3 : 1.2e-2;  // the small one's scale is denormal
    for (const float got : unpacked(blocks(std::vector<float>(256, value))))
      EXPECT_NEAR(got / value, 1, near) << value;
  }
}

// A hash of what comes out, the same on every machine and with every compiler.
TEST_P(Quantise, TheBytesAreTheSameEverywhere) {
  const std::map<std::string, const char*> hashes = {
      {"Q2_K", "7c50fe48fd88c1181c1a6242a62d2927"},   {"Q3_K", "b5705fa9d3582bf0ca546b5014ee306e"},
      {"Q4_K", "06c8586def8241d5027c11fed22bb1d0"},   {"Q5_K", "575d252474ad2beed31f56675e91fe99"},
      {"Q6_K", "04d420d751fb3a13b0cbd9d9958057cf"},   {"IQ4_NL", "95bb83e2c505366f80c8a09385c9e498"},
      {"IQ4_XS", "feefab39eae5c8e98d8bd29dc5ad4d6c"}, {"MXFP4", "55bcc9b7197d2c3a0346f642a04521e6"}};
  const std::vector<float> values = bell(256 * 16, 6), importance = uneven(values.size(), 7);
  std::vector<std::byte> bytes = blocks(values);
  const std::vector<std::byte> weighted = blocks(values, importance.data());
  bytes.insert(bytes.end(), weighted.begin(), weighted.end());
  EXPECT_EQ(to_hex(hash_of(bytes)), hashes.at(GetParam()));
}

TEST_P(Quantise, AnythingAtAllIsDefinedAndWhatIsNotFiniteIsSeen) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {inf, -inf, nan, 3e38f, -3e38f, 1e-44f, 1e-30f, 65504.0f}) {
    std::vector<float> values = bell(256, 8);
    values[100] = value;
    const std::vector<std::byte> bytes = blocks(values);
    unpacked(bytes);
    // Beyond the largest scale; MXFP4's is large enough for any number.
    const bool fits = std::fabs(value) < (GetParam() == "MXFP4" ? inf : 1e6f);
    EXPECT_EQ(format().find_nonfinite(bytes.data(), 256) < 0, fits) << value;
  }
  std::vector<float> importance = uneven(256, 9);
  importance[7] = nan;
  importance[40] = inf;
  importance[80] = -1;
  blocks(bell(256, 8), importance.data());
}

// The four older formats: without an importance as the gguf package has them (tests/judge), with one nearer.
TEST(QuantiseOlder, WhatMattersComesNearer) {
  const std::vector<float> values = bell(256 * 64, 2), importance = uneven(values.size(), 3);
  for (const char* name : {"Q4_0", "Q4_1", "Q5_0", "Q5_1"}) {
    const Format& format = *find_format(std::string_view(name));
    const auto error = [&](const float* w) {
      std::vector<std::byte> bytes(row_bytes(format, static_cast<std::int64_t>(values.size())));
      format.quantize(values.data(), w, bytes.data(), static_cast<std::int64_t>(values.size()));
      std::vector<float> got(values.size());
      format.unpack(bytes.data(), got.data(), static_cast<std::int64_t>(values.size()));
      double sum = 0;
      for (std::size_t i = 0; i < values.size(); ++i)
        sum += static_cast<double>(importance[i]) * (values[i] - got[i]) * (values[i] - got[i]);
      return sum;
    };
    EXPECT_LT(error(importance.data()), 0.95 * error(nullptr)) << name;
  }
}

}  // namespace
}  // namespace coppice::core
