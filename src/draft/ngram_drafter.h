// The drafter `ngram`: what usually follows, as counted in a file of n-grams (katz.h).
#pragma once

#include <memory>

#include "draft/katz.h"
#include "draft/registry.h"

namespace coppice::core {

class NgramDrafter final : public Drafter {
 public:
  explicit NgramDrafter(std::shared_ptr<const KatzModel> model) : model_(std::move(model)) {}

  std::string_view name() const override { return "ngram"; }
  DrafterShape shape() const override;
  Status begin(int, std::span<const Token>, const Sampler&) override { return {}; }
  void end(int) override {}
  void predict(std::span<Query> queries) override;
  void describe(const Query& query, std::span<const Token> tokens, float* out, int stride) override;
  void observe(int, std::span<const Token>) override {}

 private:
  void contexts(const Query& query, NgramContext* out) const;

  std::shared_ptr<const KatzModel> model_;
};

// ngram(FILE). Refuses a file that was counted with another vocabulary.
Result<std::unique_ptr<Drafter>> make_ngram(const DrafterNode& node, const DraftEnvironment& environment);

}  // namespace coppice::core
