// The quantised product with VPMADDUBSW in 512 bits: AVX-512 before VNNI.
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AVX512BW__)
#include "kernels/lanes_512.h"
#include "kernels/matmul_panels.h"

namespace coppice::core {
namespace {

struct Vector : Lanes512 {
  static constexpr Product kProduct = Product::pairs;
  static constexpr int kRows = 8;
  static constexpr std::size_t kAhead = 24 * 1024;  // bytes
  static constexpr int kPanelTile = 6;
};

}  // namespace

void matmul_avx512(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  lanes_matmul<Vector>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
