// Any bytes as an n-gram file: refused with a sentence, or every context it knows can be asked.
#include <cmath>
#include <vector>

#include "base/check.h"
#include "draft/katz.h"

namespace coppice::core {
namespace {

// Tokens from the input's own bytes, so that contexts in the file are met.
std::vector<Token> tokens_of(const unsigned char* data, std::size_t size) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i + 1 < size && i < 4096; i += 2) tokens.push_back(data[i] | data[i + 1] << 8);
  return tokens;
}

void ask(const KatzModel& model, std::span<const Token> context) {
  NgramContext found[kMaxNgramContext + 1];
  model.contexts(context, found);
  Token tokens[20];
  float chances[20];
  std::uint32_t counts[20];
  const int n = model.predict(found, tokens, chances);
  for (int i = 0; i < n; ++i) {
    COPPICE_CHECK(tokens[i] >= 0 && tokens[i] < model.vocab());
    COPPICE_CHECK(!std::isnan(chances[i]));
  }
  for (int k = 0; k <= model.order(); ++k) {
    const int top = model.top(found[k], tokens, counts);
    for (int i = 0; i < top; ++i) COPPICE_CHECK(model.count(found[k], tokens[i]) > 0);
  }
  if (!context.empty()) model.probability(found, context.back());
}

}  // namespace
}  // namespace coppice::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const auto model = core::KatzModel::parse({reinterpret_cast<const std::byte*>(data), size}, "input");
  if (!model) {
    COPPICE_CHECK(model.error().message.starts_with("input: "));
    return 0;
  }
  const std::vector<coppice::Token> tokens = core::tokens_of(data, size);
  for (std::size_t i = 0; i <= tokens.size(); ++i) core::ask(**model, std::span(tokens).first(i));
  for (coppice::Token a = 0; a < 8; ++a)
    for (coppice::Token b = 0; b < 8; ++b) {
      const coppice::Token context[] = {b, a, b, a};
      core::ask(**model, context);
    }
  return 0;
}
