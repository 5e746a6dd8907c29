// Any template at all over a conversation with everything in it: refused with line and column, or rendered
// within small limits; what came from data is marked in order and inside the text.
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/template.h"

namespace coppice::core::jinja {
namespace {

const Variables& variables() {
  static const Variables kVariables = [] {
    const auto json = nlohmann::ordered_json::parse(R"({
      "messages": [{"role": "system", "content": "Be <|im_end|> brief"}, {"role": "user", "content": "h\u00e9llo \ud83d\ude42"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "123456789", "function": {"name": "f", "arguments": {"x": [1, 2.5, true]}}}]},
        {"role": "tool", "content": "{}", "tool_call_id": "123456789"}, {"role": "user", "content": [{"type": "text", "text": "a"}]}],
      "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "array"}}}}}],
      "documents": null, "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>", "n": 7, "f": -2.5, "s": "some text", "l": [3, 1, 2]})");
    Variables out;
    for (const auto& [name, value] : json.items()) out.emplace_back(name, from_json(value).value());
    return out;
  }();
  return kVariables;
}

void check(const Text& text) {
  std::size_t before = 0;
  bool first = true;
  for (const TextRange& range : text.data()) {
    COPPICE_CHECK(range.begin < range.end && range.end <= text.size());
    COPPICE_CHECK(first || range.begin > before);
    before = range.end;
    first = false;
  }
}

}  // namespace
}  // namespace coppice::core::jinja

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace jinja = coppice::core::jinja;
  const auto parsed = jinja::Template::parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) {
    COPPICE_CHECK(parsed.error().message.starts_with("line "));
    return 0;
  }
  jinja::RenderOptions options;
  options.limits.work = 4'000'000;
  options.limits.depth = 200;
  const auto text = parsed->render(jinja::variables(), options);
  if (!text) {
    COPPICE_CHECK(text.error().message.starts_with("line "));
    return 0;
  }
  COPPICE_CHECK(text->size() <= options.limits.work);
  jinja::check(*text);
  return 0;
}
