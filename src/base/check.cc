#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace coppice {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "coppice: a bug of ours: %s does not hold (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace coppice
