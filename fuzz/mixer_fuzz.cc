// Any text as a mixer's prior: refused with a sentence that names the line, or what was read writes to a text
// that reads the same.
#include "base/check.h"
#include "draft/prior.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const auto prior = core::parse_prior({reinterpret_cast<const char*>(data), size}, "input");
  if (!prior) {
    COPPICE_CHECK(prior.error().message.starts_with("input"));
    return 0;
  }
  const std::string written = core::to_string(*prior);
  const auto again = core::parse_prior(written, "again");
  COPPICE_CHECK(again && core::to_string(*again) == written);
  return 0;
}
