// The quantised product with VPMADDUBSW in 256 bits.
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AVX2__)
#include "kernels/lanes_256.h"
#include "kernels/matmul_panels.h"

namespace coppice::core {
namespace {

struct Vector : Lanes256 {
  static constexpr Product kProduct = Product::pairs;
  static constexpr int kRows = 4;
  static constexpr std::size_t kAhead = 16 * 1024;  // bytes
  static constexpr int kPanelTile = 4;
};

}  // namespace

void matmul_avx2(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  lanes_matmul<Vector>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
