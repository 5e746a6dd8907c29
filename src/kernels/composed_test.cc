#include "kernels/composed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace coppice::core {
namespace {

std::vector<float> wide_values() {
  std::vector<float> x;
  for (float v = -14.0f; v < 14.0f; v += 0.0037f) x.push_back(v);
  for (const float v : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e20f, -1e20f, 3e38f, -3e38f}) x.push_back(v);
  return x;
}

TEST(Composed, ExactGeluIsTheOneByTheErrorFunction) {
  const std::vector<float> x = wide_values();
  std::vector<float> out(x.size());
  gelu_exact(kernels(), x.data(), out.data(), static_cast<int>(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = x[i], exact = v * 0.5 * std::erfc(-v / std::sqrt(2.0));
    EXPECT_NEAR(out[i], exact, 3e-7 * std::max(1.0, std::fabs(v))) << v;
  }
}

TEST(Composed, ASoftCapIsATanh) {
  for (const float cap : {1.0f, 30.0f, 50.0f}) {
    std::vector<float> x = wide_values();
    const std::vector<float> before = x;
    soft_cap(kernels(), cap, x.data(), static_cast<int>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(x[i], cap * std::tanh(static_cast<double>(before[i]) / cap), 2e-7 * cap) << before[i];
  }
}

TEST(Composed, EveryTableGivesTheSameBits) {
  const std::vector<float> x = wide_values();
  const Kernels& scalar = *all_kernels()[0];
  std::vector<float> expected(x.size()), out(x.size());
  for (const Kernels* table : all_kernels()) {
    if (!usable(*table)) continue;
    const int n = static_cast<int>(x.size());
    gelu_exact(scalar, x.data(), expected.data(), n);
    gelu_exact(*table, x.data(), out.data(), n);
    EXPECT_EQ(std::memcmp(expected.data(), out.data(), x.size() * sizeof(float)), 0) << table->name;
    expected = out = x;
    soft_cap(scalar, 30.0f, expected.data(), n);
    soft_cap(*table, 30.0f, out.data(), n);
    EXPECT_EQ(std::memcmp(expected.data(), out.data(), x.size() * sizeof(float)), 0) << table->name;
  }
}

TEST(Composed, ExpertsAreTheLargestInOrderAndTheirWeightsAreASoftmax) {
  const float logits[] = {0.5f, 2.0f, -1.0f, 2.0f, 1.0f};
  ExpertChoice choices[3];
  choose_experts(logits, 3, choices);
  const int expected[] = {1, 3, 4};
  const double sum = 1 + 1 + std::exp(-1.0);
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(choices[k].expert, expected[k]);
    EXPECT_NEAR(choices[k].weight, std::exp(k < 2 ? 0.0 : -1.0) / sum, 1e-7);
  }
}

}  // namespace
}  // namespace coppice::core
