// Any text at all: it is refused with the column, or what was read writes to a text that reads the same.
#include "base/check.h"
#include "draft/expression.h"

namespace coppice::core {
namespace {

bool equal(const DrafterMix& a, const DrafterMix& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].files != b[i].files || a[i].options != b[i].options ||
        !equal(a[i].inner, b[i].inner))
      return false;
  return true;
}

}  // namespace
}  // namespace coppice::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const auto mix = core::parse_drafters({reinterpret_cast<const char*>(data), size});
  if (!mix) {
    COPPICE_CHECK(mix.error().message.starts_with("drafters"));
    return 0;
  }
  const std::string written = core::to_string(*mix);
  const auto again = core::parse_drafters(written);
  // Quotes and spaces may make what is written longer than what is read.
  COPPICE_CHECK(written.size() > 4096 || (again && core::equal(*mix, *again)));
  return 0;
}
