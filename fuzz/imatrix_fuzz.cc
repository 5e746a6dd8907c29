// Any bytes as an importance matrix, of either format: refused with a sentence, or all it says is finite and
// not below zero.
#include <cmath>

#include "api/importance.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto matrix = coppice::ImportanceMatrix::parse(std::as_bytes(std::span(data, size)), "input");
  if (!matrix) {
    COPPICE_CHECK(matrix.error().message.starts_with("input: "));
    return 0;
  }
  COPPICE_CHECK(matrix->entries() > 0);
  if (const auto* means = matrix->find("a"))
    for (const float mean : *means) COPPICE_CHECK(std::isfinite(mean) && mean >= 0);
  return 0;
}
