// Any text as a JSON schema: refused with a sentence, or compiled; then a few random walks through its masks:
// from every place that is reached the end can be reached, and what the mask allows is allowed token by
// token.
#include "base/check.h"
#include "grammar/json_schema.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace grammar = coppice::core::grammar;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto compiled = grammar::compile_json_schema(text);
  if (!compiled) {
    COPPICE_CHECK(!compiled.error().message.empty());
    return 0;
  }
  grammar::walk(std::make_shared<const grammar::Compiled>(std::move(*compiled)), size);
  return 0;
}
