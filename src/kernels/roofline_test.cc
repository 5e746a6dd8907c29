// The loops that others are measured against: they do what they count.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/kernels.h"

namespace coppice::core {
namespace {

TEST(Roofline, ReadAllSeesEveryPlace) {
  for (const Kernels* table : all_kernels()) {
    if (!usable(*table)) continue;
    for (const int lines : {1, 2, 3, 4, 5, 8, 9, 31}) {
      std::vector<float> values(static_cast<std::size_t>(lines) * 16, -1.0f);
      const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
      EXPECT_EQ(table->read_all(bytes, values.size() * 4), 0.0f) << table->name;
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = 3.0f;
        EXPECT_EQ(table->read_all(bytes, values.size() * 4), 3.0f) << table->name << " place " << i;
        values[i] = -1.0f;
      }
    }
  }
}

TEST(Roofline, PeaksCountWhatTheyDo) {
  for (const Kernels* table : all_kernels()) {
    if (!usable(*table)) continue;
    for (auto peak : {table->int8_peak, table->f32_peak}) {
      EXPECT_EQ(peak(0), 0.0) << table->name;
      EXPECT_GT(peak(1), 0.0) << table->name;
      EXPECT_EQ(peak(1000), 1000 * peak(1)) << table->name;
    }
  }
}

}  // namespace
}  // namespace coppice::core
