// Not in the table of kernels: no pass needs it, and one wider copy is all there is to gain.
#include "kernels/mixing.inc"
#include "base/os.h"

namespace coppice::core {

float mix_one(const float* weights, const float* into, const float* x, int features, float* units) {
#if defined(__x86_64__) || defined(_M_X64)
  static const bool avx2 = cpu_features().avx2;
  if (avx2) return mix_one_avx2(weights, into, x, features, units);
#endif
  return mix_one_here(weights, into, x, features, units);
}

}  // namespace coppice::core
