#include "kernels/isa_begin.h"

#include "kernels/mixing.inc"

#if defined(__AVX2__)

namespace coppice::core {

float mix_one_avx2(const float* weights, const float* into, const float* x, int features, float* units) {
  return mix_one_here(weights, into, x, features, units);
}

}  // namespace coppice::core
#endif
