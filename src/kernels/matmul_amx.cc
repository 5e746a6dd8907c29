// The quantised product with AMX. Few rows leave most of a tile empty and the weights' unpacking unshared:
// they go to the VNNI kernel, whose bits are the same.
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AMX_INT8__)
#include "kernels/lanes_512.h"
#include "kernels/matmul_tiles.h"
#include "kernels/tiles_amx.h"

namespace coppice::core {
namespace {

constexpr int kFewestRows = 13;  // measured: docs/decisions/amx.md

struct Vector : Lanes512 {
  static constexpr std::size_t kAhead = 24 * 1024;  // bytes
};

}  // namespace

void matmul_amx(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  if (task.rows < kFewestRows) return matmul_avx512vnni(task, w, group_begin, group_end);
  tiles_matmul<Vector, Tiles>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
