// Any text as a policy: refused with a sentence, or a row of the table with options that it takes.
#include "base/check.h"
#include "policy/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const auto chosen = core::choose_policy({reinterpret_cast<const char*>(data), size});
  if (chosen) {
    COPPICE_CHECK(chosen->row != nullptr && chosen->row->check(chosen->expression, false));
  } else {
    COPPICE_CHECK(!chosen.error().message.empty());
  }
  return 0;
}
