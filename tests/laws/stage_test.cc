// A stage's inner grower saves passes of the draft and changes nothing: measured on the real model, which is
// its own draft here, with n-grams counted on text it wrote.
#include <gtest/gtest.h>

#include "draft/registry.h"
#include "laws/harness.h"

namespace coppice::core::laws {
namespace {

struct Grown {
  std::vector<Token> trees;  // parents, tokens and lengths accepted, one after the other
  std::uint64_t passes = 0;
};

Grown grow_along(const std::string& expression, std::span<const Token> text, std::size_t start) {
  const LawModel& model = smollm2();
  ThreadPool pool(2);
  DraftEnvironment environment;
  environment.vocabulary = &model.tokenizer->vocabulary();
  environment.pool = &pool;
  environment.context = 512;
  environment.load_model = [&](const std::string&) {
    return Result<std::shared_ptr<const Model>>(model.model);
  };
  environment.load_vocabulary = [&](const std::string&) {
    return Result<Vocabulary>(model.tokenizer->vocabulary());
  };
  const auto mix = parse_drafters(expression);
  EXPECT_TRUE(mix.has_value());
  const auto grower = make_grower(*mix, environment);
  EXPECT_TRUE(grower.has_value()) << (grower ? "" : grower.error().message);
  const Sampler sampler = *Sampler::make({}, model.tokenizer->size(), {});
  Grown grown;
  TokenTree tree;
  EXPECT_TRUE((*grower)->begin(0, text.first(start), sampler).has_value());
  for (std::size_t at = start; at < text.size();) {
    tree.reset(text[at - 1]);
    GrowJob job{0, text.first(at), &sampler, {8, 16, 0.02f, 1.0f, 0.0f}, &tree, {}};
    (*grower)->grow({&job, 1});
    std::size_t accepted = 0;
    int node = 0;
    do {
      node = tree.child(node, text[at + accepted++]);
    } while (node != kNoNode && at + accepted < text.size());
    for (int n = 1; n < tree.size(); ++n) {
      grown.trees.push_back(tree.parent(n));
      grown.trees.push_back(tree.token(n));
    }
    grown.trees.push_back(static_cast<Token>(accepted));
    (*grower)->observe(0, text.first(at), text.subspan(at, accepted));
    at += accepted;
  }
  grown.passes = (*grower)->take_cost().passes;
  return grown;
}

TEST(StageLaw, NgramsOfItsOwnTextSaveADraftFourTenthsOfItsPassesForEqualTrees) {
  const LawModel& model = smollm2();
  std::uint64_t with = 0, without = 0;
  for (const char* task :
       {"def is_prime(n: int) -> bool:\n    \"\"\"Whether n is a prime number.\"\"\"\n",
        "def reverse_words(text: str) -> str:\n    \"\"\"The words of text, last first.\n    "
        ">>> reverse_words('a b c')\n    'c b a'\n    \"\"\"\n"}) {
    const std::string prompt = std::string("<|im_start|>user\nComplete this function.\n\n") + task +
                               "<|im_end|>\n<|im_start|>assistant\n";
    Case plain;
    plain.prompt = model.tokenizer->encode(prompt, true);
    plain.sampling.max_tokens = 96;
    std::vector<Token> text = plain.prompt;
    const std::vector<Token> answer = run(model, plain).ids;
    text.insert(text.end(), answer.begin(), answer.end());
    const Grown alone = grow_along("model(draft.gguf)", text, plain.prompt.size());
    const Grown staged = grow_along(std::string("stage(draft.gguf, lookup | ngram(\"") +
                                        COPPICE_SOURCE_FOLDER + "/models/smollm2-135m-instruct.ngram\"))",
                                    text, plain.prompt.size());
    EXPECT_EQ(staged.trees, alone.trees);
    with += staged.passes;
    without += alone.passes;
  }
  RecordProperty("passes_alone", static_cast<int>(without));
  RecordProperty("passes_staged", static_cast<int>(with));
  EXPECT_LE(static_cast<double>(with), 0.6 * static_cast<double>(without)) << with << " of " << without;
  EXPECT_GT(with, 0u);
}

}  // namespace
}  // namespace coppice::core::laws
