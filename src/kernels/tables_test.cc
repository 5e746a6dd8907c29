// Every table gives the bits of the scalar one (law 3), and a row those it has alone (law 2).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

const Kernels& scalar() { return *all_kernels()[0]; }

class EveryTable : public ::testing::TestWithParam<const Kernels*> {
 protected:
  void SetUp() override {
    if (!usable(table())) GTEST_SKIP() << table().name << ": not on this machine";
  }
  const Kernels& table() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Isa, EveryTable, ::testing::ValuesIn(all_kernels().begin(), all_kernels().end()),
                         [](const auto& isa) { return std::string(isa.param->name); });

template <class T>
void expect_same_bits(const std::vector<T>& expected, const std::vector<T>& got, const std::string& what) {
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(std::memcmp(&expected[i], &got[i], sizeof(T)), 0)
        << what << " at " << i << ": " << +got[i] << ", not " << +expected[i];
}

enum class Values { normal, wide, huge, tiny, special };

// Values a pass may meet, and some that it should not. Never NaN: which NaN comes out is not promised.
std::vector<float> some_floats(std::size_t count, Values values, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> exponent(-40, 40);
  const float special[] = {0.0f, -0.0f, 1e-45f, -1e-40f, 1.17549435e-38f, 1.0f, -1.0f, 3e38f, -3e38f, 1e-30f};
  std::vector<float> x(count);
  for (float& value : x) {
    value = normal(random);
    if (values == Values::wide) value *= std::exp2(exponent(random));
    if (values == Values::huge) value *= 1e30f;
    if (values == Values::tiny) value *= 1e-38f;
    if (values == Values::special) value = special[random() % std::size(special)];
  }
  return x;
}

constexpr Values kAllValues[] = {Values::normal, Values::wide, Values::huge, Values::tiny, Values::special};
constexpr int kSizes[] = {1, 2, 15, 16, 17, 31, 33, 64, 100, 576};

// f(x, out) on every size and kind of values, out-of-place.
template <class F>
void compare_elementwise(const std::string& what, F&& f, const Kernels& table) {
  for (const int n : kSizes)
    for (const Values values : kAllValues) {
      const std::vector<float> x = some_floats(static_cast<std::size_t>(n), values, 3);
      std::vector<float> expected(x.size() + 1, 7.0f), got(x.size() + 1, 7.0f);  // one past the end stays
      f(scalar(), x, expected.data());
      f(table, x, got.data());
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (std::isnan(expected[i]) && std::isnan(got[i])) expected[i] = got[i] = 0;
      expect_same_bits(expected, got, what + " of " + std::to_string(n));
    }
}

TEST_P(EveryTable, ElementwiseFunctionsEqualTheScalarOnes) {
  using Floats = std::vector<float>;
  const auto compare = [&](const std::string& what, auto f) { compare_elementwise(what, f, table()); };
  const auto size = [](const Floats& x) { return static_cast<int>(x.size()); };
  const Floats other = some_floats(1000, Values::normal, 9);
  compare("add", [&](const Kernels& k, const Floats& x, float* out) {
    std::copy(other.begin(), other.begin() + size(x), out);
    k.add(x.data(), out, size(x));
  });
  compare("scale", [&](const Kernels& k, const Floats& x, float* out) {
    std::copy(x.begin(), x.end(), out);
    k.scale(1.7f, out, size(x));
  });
  compare("silu_mul", [&](const Kernels& k, const Floats& x, float* out) {
    k.silu_mul(x.data(), other.data(), out, size(x));
  });
  compare("gelu", [&](const Kernels& k, const Floats& x, float* out) { k.gelu(x.data(), out, size(x)); });
  compare("exp2", [&](const Kernels& k, const Floats& x, float* out) { k.exp2(x.data(), out, size(x)); });
  compare("rms_norm", [&](const Kernels& k, const Floats& x, float* out) {
    k.rms_norm(x.data(), other.data(), 1e-5f, size(x), out);
  });
  compare("layer_norm", [&](const Kernels& k, const Floats& x, float* out) {
    k.layer_norm(x.data(), other.data(), other.data() + 1, 1e-5f, size(x), out);
  });
  compare("rope", [&](const Kernels& k, const Floats& x, float* out) {
    std::copy(x.begin(), x.end(), out);
    k.rope(out, other.data(), size(x) / 2 * 2);
  });
  compare("rope_halves", [&](const Kernels& k, const Floats& x, float* out) {
    std::copy(x.begin(), x.end(), out);
    k.rope_halves(out, other.data(), size(x) / 2 * 2);
  });
}

TEST_P(EveryTable, Exp2CoversItsWholeRange) {
  std::vector<float> x, out;
  for (float v = -70.0f; v < 130.0f; v += 0.003f) x.push_back(v);
  for (const float v : {-64.0f, -64.000008f, -1e30f, 128.0f, 127.99999f, 3e38f}) x.push_back(v);
  x.push_back(-std::numeric_limits<float>::infinity());
  x.push_back(std::numeric_limits<float>::infinity());
  out.resize(x.size());
  table().exp2(x.data(), out.data(), static_cast<int>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = exp2_exact(x[i]);
  expect_same_bits(x, out, "exp2");
}

struct Quantised {
  explicit Quantised(std::size_t rows, std::size_t inputs)
      : codes(rows * inputs),
        scales(rows * inputs / 32),
        scaled_sums(scales),
        sums(scales.size()),
        half_sums(scales.size()) {}
  QuantizedRows rows(std::size_t first, int inputs) {
    const std::size_t block = first * static_cast<std::size_t>(inputs) / 32;
    return {codes.data() + block * 32, scales.data() + block,    scaled_sums.data() + block,
            sums.data() + block,       half_sums.data() + block, inputs};
  }
  std::vector<std::int8_t> codes;
  std::vector<float> scales, scaled_sums;
  std::vector<std::int32_t> sums, half_sums;
};

TEST_P(EveryTable, QuantisesARowAsTheScalarOne) {
  for (const Values values : kAllValues) {
    const std::vector<float> x = some_floats(576 * 8, values, 5);
    Quantised expected(1, x.size()), got(1, x.size());
    const auto run = [&](const Kernels& k, Quantised& q) {
      return k.quantize_row(x.data(), q.rows(0, static_cast<int>(x.size())));
    };
    ASSERT_TRUE(run(scalar(), expected));
    ASSERT_TRUE(run(table(), got));
    expect_same_bits(expected.codes, got.codes, "codes");
    expect_same_bits(expected.scales, got.scales, "scales");
    expect_same_bits(expected.scaled_sums, got.scaled_sums, "scaled sums");
    expect_same_bits(expected.sums, got.sums, "sums");
    expect_same_bits(expected.half_sums, got.half_sums, "half sums");
  }
}

TEST_P(EveryTable, QuantisationRoundsHalfToEvenAndRefusesWhatIsNotFinite) {
  std::vector<float> x(64, 0.0f);
  const float given[] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f, -127.0f};
  std::copy(std::begin(given), std::end(given), x.begin());
  Quantised q(1, 64);
  const auto run = [&] { return table().quantize_row(x.data(), q.rows(0, 64)); };
  ASSERT_TRUE(run());
  const std::vector<std::int8_t> expected = {127, 0, 2, 2, 0, -2, 126, -127};
  expect_same_bits(expected, {q.codes.begin(), q.codes.begin() + 8}, "codes");
  EXPECT_EQ(q.scales, (std::vector<float>{1.0f, 0.0f}));
  EXPECT_EQ(q.sums, (std::vector<std::int32_t>{128, 0}));
  EXPECT_EQ(q.half_sums, (std::vector<std::int32_t>{128, 0}));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {0, 31, 40, 63}) {
      const float before = std::exchange(x[at], -bad);
      EXPECT_FALSE(run()) << at;
      x[at] = before;
    }
  }
}

TEST_P(EveryTable, ArgmaxTakesTheLowestOfEqualsAndNeverANaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto argmax = [&](std::vector<float> x) {
    return table().argmax(x.data(), static_cast<int>(x.size()));
  };
  EXPECT_EQ(argmax({}), -1);
  EXPECT_EQ(argmax({nan, nan}), -1);
  EXPECT_EQ(argmax(std::vector<float>(40, nan)), -1);
  EXPECT_EQ(argmax({nan, -inf, -inf}), 1);
  EXPECT_EQ(argmax({-0.0f, 0.0f}), 0);
  EXPECT_EQ(argmax({1, 3, nan, 3, 2}), 1);
  for (int n = 1; n < 70; ++n)
    for (int at = 0; at < n; ++at) {
      std::vector<float> x = some_floats(static_cast<std::size_t>(n), Values::normal, 1);
      if (n > 2) x[static_cast<std::size_t>((at + 5) % n)] = nan;
      x[static_cast<std::size_t>(at)] = 100;
      x[static_cast<std::size_t>(n - 1)] = 100;
      ASSERT_EQ(argmax(x), at) << n;
      ASSERT_EQ(argmax(x), scalar().argmax(x.data(), n));
    }
}

TEST_P(EveryTable, GroupMaximaAreTheLargestOfEach32AndNoticeWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const int n : {1, 15, 16, 31, 32, 33, 63, 64, 100, 1000}) {
    const auto size = static_cast<std::size_t>(n), groups = (size + 31) / 32;
    std::vector<float> x = some_floats(size, Values::normal, 3);
    std::vector<float> got(groups + 1, 5.0f), expected(got);
    const auto same = [&](bool finite) {
      ASSERT_EQ(table().group_maxima(x.data(), n, got.data()), finite) << n;
      ASSERT_EQ(scalar().group_maxima(x.data(), n, expected.data()), finite) << n;
      ASSERT_EQ(got, expected) << n;
      for (std::size_t g = 0; g < groups; ++g) {
        float largest = -inf;
        for (std::size_t i = 32 * g; i < std::min(size, 32 * g + 32); ++i)
          if (x[i] > largest) largest = x[i];
        ASSERT_EQ(got[g], largest) << n << " " << g;
      }
      ASSERT_EQ(got[groups], 5.0f) << "wrote beyond the last group";
    };
    same(true);
    for (const float bad : {nan, inf, -inf})
      for (std::size_t at = 0; at < size; at += 7) {
        const float before = std::exchange(x[at], bad);
        same(false);
        x[at] = before;
      }
    std::fill(x.begin(), x.end(), nan);
    same(false);
  }
}

TEST_P(EveryTable, GumbelNoiseEqualsThePlainFunction) {
  const NoiseKey key{0xFEDCBA9876543210, 3, 0x00123456};
  for (const int first : {0, 2, 1000})
    for (const int count : {1, 15, 16, 17, 40, 3001}) {
      std::vector<double> got(static_cast<std::size_t>(count) + 1, 5.0), expected(got);
      table().gumbel(key, 77, first, count, got.data());
      for (int i = 0; i < count; ++i)
        expected[static_cast<std::size_t>(i)] = gumbel_noise(key, 77, first + i);
      expect_same_bits(expected, got, "noise");
    }
}

TEST_P(EveryTable, TheBoundOfTheNoiseEqualsThePlainFunctionAndIsAboveTheNoise) {
  const NoiseKey key{0x123456789ABCDEF, 0, 1};
  for (const int count : {1, 16, 17, 3001}) {
    std::vector<float> got(static_cast<std::size_t>(count) + 1, 5.0f), expected(got);
    table().gumbel_bound(key, 77, 4, count, got.data());
    for (int i = 0; i < count; ++i)
      expected[static_cast<std::size_t>(i)] = gumbel_noise_bound(key, 77, 4 + i);
    expect_same_bits(expected, got, "bound");
    for (int i = 0; i < count; ++i) {
      const double noise = gumbel_noise(key, 77, 4 + i), above = got[static_cast<std::size_t>(i)] - noise;
      ASSERT_GT(above, 0);
      ASSERT_TRUE(noise <= 1 || above < 0.3) << i;
    }
  }
}

// `half` with its exponent made small enough that sums stay finite.
std::uint16_t finite_half_of(std::uint16_t half, bool bfloat) {
  if (bfloat) return static_cast<std::uint16_t>((half & 0x8FFF) | 0x3000);
  return (half & 0x7C00) == 0x7C00 ? half ^ 0x4000 : half;
}

// A matrix with random bytes in every place, scales kept finite.
PackedMatrix random_matrix(PackedKind kind, int outputs, int inputs, unsigned seed) {
  std::mt19937 random(seed);
  PackedMatrix m;
  m.kind = kind, m.outputs = outputs, m.inputs = inputs;
  m.data = std::move(*Buffer::make(m.bytes()));
  std::byte* bytes = m.data.data();
  const std::size_t unit = packed_unit_bytes(kind);
  const PackedShape shape = shape_of(kind);
  const std::size_t begin = m.quantised() ? scales_at(shape) : 0, end = m.quantised() ? subs_at(shape) : unit;
  const bool bfloat = kind == PackedKind::bf16 || shape.scale == ScaleType::power;
  for (std::size_t at = 0; at < m.bytes(); at += unit) {
    for (std::size_t i = 0; i < unit; ++i) bytes[at + i] = static_cast<std::byte>(random());
    if (kind == PackedKind::f32) {
      const std::vector<float> values = some_floats(32, Values::wide, static_cast<unsigned>(random()));
      std::memcpy(bytes + at, values.data(), 128);
      continue;
    }
    for (std::size_t i = begin; i < end; i += 2) {
      const std::uint16_t half = finite_half_of(static_cast<std::uint16_t>(random()), bfloat);
      std::memcpy(bytes + at + i, &half, 2);
    }
  }
  return m;
}

struct MatmulCase {
  // At least `least` inputs.
  MatmulCase(PackedKind kind, int outputs, int least, int row_count, Values values, unsigned seed)
      : inputs(whole_units(kind, least)),
        matrix(random_matrix(kind, outputs, inputs, seed)),
        rows(row_count),
        x(some_floats(static_cast<std::size_t>(rows) * static_cast<std::size_t>(inputs), values, seed + 1)),
        q(static_cast<std::size_t>(rows), static_cast<std::size_t>(inputs)) {
    for (int r = 0; r < rows; ++r)
      EXPECT_TRUE(scalar().quantize_row(&x[static_cast<std::size_t>(r) * static_cast<std::size_t>(inputs)],
                                        q.rows(static_cast<std::size_t>(r), inputs)));
  }
  std::size_t stride() const { return static_cast<std::size_t>(matrix.groups()) * kGroupOutputs + 16; }

  std::vector<float> run(const Kernels& k, int first, int count, int group_begin, int group_end) {
    std::vector<float> y(static_cast<std::size_t>(count) * stride(), -1.0f);
    MatmulTask task;
    task.weights = &matrix;
    task.x = x.data() + static_cast<std::size_t>(first) * static_cast<std::size_t>(matrix.inputs);
    task.q = q.rows(static_cast<std::size_t>(first), matrix.inputs);
    task.y = y.data();
    task.y_stride = stride();
    task.rows = count;
    k.matmul(task, group_begin, group_end);
    return y;
  }

  int inputs;
  PackedMatrix matrix;
  int rows;
  std::vector<float> x;
  Quantised q;
};

constexpr PackedKind kAllKinds[] = {
    PackedKind::f32,       PackedKind::f16,      PackedKind::bf16,     PackedKind::q4,
    PackedKind::q4_offset, PackedKind::q8,       PackedKind::q5,       PackedKind::q5_offset,
    PackedKind::q4_table,  PackedKind::q4_power, PackedKind::q2_super, PackedKind::q3_super,
    PackedKind::q4_super,  PackedKind::q5_super, PackedKind::q6_super, PackedKind::q4_table_super};
static_assert(std::size(kAllKinds) == kPackedKinds);

TEST_P(EveryTable, MatmulEqualsTheScalarOneForEveryKindAndRowCount) {
  for (const PackedKind kind : kAllKinds)
    for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 25, 31, 33, 64, 70})
      for (const int outputs : {1, 16, 32, 80}) {
        MatmulCase c(kind, outputs, rows % 2 ? 96 : 64, rows, Values::normal,
                     static_cast<unsigned>(rows + outputs));
        expect_same_bits(c.run(scalar(), 0, rows, 0, c.matrix.groups()),
                         c.run(table(), 0, rows, 0, c.matrix.groups()),
                         "kind " + std::to_string(static_cast<int>(kind)) + ", rows " + std::to_string(rows));
      }
}

constexpr int kTiledRows = 27;  // so many that AMX's tiles do them (matmul_amx.cc), of two heights

TEST_P(EveryTable, MatmulEqualsTheScalarOneForExtremeValues) {
  for (const PackedKind kind : kAllKinds)
    for (const Values values : {Values::wide, Values::tiny, Values::special})
      for (const int rows : {7, kTiledRows}) {
        if (values == Values::special && kind < PackedKind::q4) continue;  // infinities cancel to NaN
        MatmulCase c(kind, 48, 576, rows, values, 21);
        expect_same_bits(c.run(scalar(), 0, rows, 0, 2), c.run(table(), 0, rows, 0, 2), "extreme values");
      }
}

TEST_P(EveryTable, MatmulIsExactAtTheLimitsOfTheCodes) {
  const auto check = [&](PackedKind kind, int byte, int code, int rows) {
    MatmulCase c(kind, 64, 64, rows, Values::normal, 3);
    const std::size_t unit = packed_unit_bytes(kind), codes = scales_at(shape_of(kind));
    for (std::size_t at = 0; at < c.matrix.bytes(); at += unit)
      std::memset(c.matrix.data.data() + at, byte, codes);
    std::fill(c.q.codes.begin(), c.q.codes.end(), static_cast<std::int8_t>(code));
    std::fill(c.q.sums.begin(), c.q.sums.end(), 32 * code);
    std::fill(c.q.half_sums.begin(), c.q.half_sums.end(), 16 * code);
    expect_same_bits(c.run(scalar(), 0, rows, 0, 2), c.run(table(), 0, rows, 0, 2),
                     "kind " + std::to_string(static_cast<int>(kind)) + ", bytes " + std::to_string(byte) +
                         ", codes " + std::to_string(code));
  };
  for (const PackedKind kind : std::span(kAllKinds).subspan(3))
    for (const int byte : {0x00, 0xFF})
      for (const int code : {-127, 127})
        for (const int rows : {5, kTiledRows}) check(kind, byte, code, rows);
}

TEST_P(EveryTable, ARowHasTheSameBitsAloneAndAmongMany) {
  for (const PackedKind kind : kAllKinds) {
    MatmulCase c(kind, 80, 128, 64, Values::normal, 17);
    const std::vector<float> all = c.run(table(), 0, 64, 0, 3);
    for (const int count : {1, 2, 3, 5, 8})
      for (int first = 0; first + count <= 64; first += 7) {
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(c.stride()) * first;
        expect_same_bits({begin, begin + static_cast<std::ptrdiff_t>(c.stride()) * count},
                         c.run(table(), first, count, 0, 3), "rows from " + std::to_string(first));
      }
  }
}

TEST_P(EveryTable, GroupsDoNotDependOnHowTheyAreShared) {
  const auto check = [&](PackedKind kind, int rows) {
    MatmulCase c(kind, 224, 64, rows, Values::normal, 23);
    const std::vector<float> all = c.run(table(), 0, rows, 0, 7);
    for (int begin = 0; begin < 7; ++begin)
      for (int end = begin; end <= 7; ++end) {
        const std::vector<float> part = c.run(table(), 0, rows, begin, end);
        for (std::size_t i = 0; i < part.size(); ++i) {
          const int group = static_cast<int>(i % c.stride()) / kGroupOutputs;
          const float expected = group >= begin && group < end ? all[i] : -1.0f;  // nothing else is written
          ASSERT_EQ(std::bit_cast<std::uint32_t>(part[i]), std::bit_cast<std::uint32_t>(expected)) << i;
        }
      }
  };
  for (const PackedKind kind : kAllKinds)
    for (const int rows : {6, kTiledRows}) check(kind, rows);
}

// The reference itself, against f64 sums of the dequantised weights.
TEST(ScalarMatmul, IsTheProductWithTheDequantisedWeights) {
  for (const PackedKind kind : kAllKinds) {
    MatmulCase c(kind, 40, 160, 3, Values::normal, 31);
    const auto inputs = static_cast<std::size_t>(c.inputs);
    const std::vector<float> y = c.run(scalar(), 0, 3, 0, 2);
    for (int output = 0; output < 40; ++output) {
      std::vector<float> w(inputs);
      unpack_row(c.matrix, output, w.data());
      for (std::size_t row = 0; row < 3; ++row) {
        double sum = 0, size = 0;
        for (std::size_t i = 0; i < inputs; ++i) {
          const std::size_t at = row * inputs + i;
          const double x =
              kind >= PackedKind::q4 ? static_cast<double>(c.q.codes[at]) * c.q.scales[at / 32] : c.x[at];
          sum += w[i] * x, size += std::fabs(w[i] * x);
        }
        EXPECT_NEAR(y[row * c.stride() + static_cast<std::size_t>(output)], sum, 4e-6 * size);
      }
    }
  }
}

TEST(KernelChoice, NamesATableOrRefuses) {
  EXPECT_EQ(scalar().name, "scalar");
  EXPECT_FALSE(force_kernels("no such table"));
  for (const Kernels* table : all_kernels()) {
    ASSERT_EQ(force_kernels(table->name), usable(*table));
    EXPECT_TRUE(!usable(*table) || &kernels() == table);
  }
}

}  // namespace
}  // namespace coppice::core
