// I64: numbers that are no weights, such as ids of tokens. As floats they are good to look at, no more.
#include "base/check.h"
#include "quant/blocks.h"

namespace coppice::core::i64 {

void unpack(const std::byte* blocks, float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(load<std::int64_t>(blocks + 8 * i));
}

// Towards zero; what no integer is, or none so large, is 0.
void quantize(const float* values, const float*, std::byte* blocks, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool fits = values[i] > -0x1p63f && values[i] < 0x1p63f;
    store<std::int64_t>(blocks + 8 * i, fits ? static_cast<std::int64_t>(values[i]) : 0);
  }
}

void pack_rows(const std::byte*, std::size_t, int, int, std::byte*) {
  COPPICE_CHECK(false);  // Format::weights is false
}

std::int64_t find_nonfinite(const std::byte*, std::int64_t) { return -1; }

}  // namespace coppice::core::i64
