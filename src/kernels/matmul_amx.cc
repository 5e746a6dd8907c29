// The quantised product with AMX. Few rows leave most of a tile empty and the weights' unpacking unshared:
// they go to the vectors, whose bits are the same. There tiles of 8 rows are best (docs/decisions/amx.md).
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AMX_INT8__) || defined(__AMXINT8__)  // the second is what clang calls it up to 15
#include "kernels/lanes_512vnni.h"
#include "kernels/matmul_tiles.h"
#include "kernels/tiles_amx.h"

namespace coppice::core {
namespace {

constexpr int kFewestRows = 25;  // three tiles of vectors do 24

using Vector = Lanes512Vnni;

}  // namespace

void matmul_amx(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  if (task.rows < kFewestRows) return lanes_matmul<Vector>(task, w, group_begin, group_end);
  tiles_matmul<Vector, Tiles>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
