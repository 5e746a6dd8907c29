#include "draft/registry.h"

#include <gtest/gtest.h>

#include "draft/custom_drafter.h"

namespace coppice::core {
namespace {

std::string refusal(std::string_view expression) {
  const auto mix = parse_drafters(expression);
  EXPECT_TRUE(mix.has_value()) << (mix ? "" : mix.error().message);
  Vocabulary vocabulary;
  vocabulary.tokens = {"a", "b"};
  DraftEnvironment environment;
  environment.vocabulary = &vocabulary;
  environment.load_vocabulary = [](const std::string&) {
    Vocabulary other;
    other.tokens = {"a", "c"};
    return Result<Vocabulary>(other);
  };
  environment.load_model = [](const std::string& path) {
    return Result<std::shared_ptr<const Model>>(fail("there is no file " + path));
  };
  ThreadPool pool(1);
  environment.pool = &pool;
  const auto grower = make_grower(*mix, environment);
  return grower ? "" : grower.error().message;
}

bool says(const std::string& sentence, std::string_view words) {
  return sentence.find(words) != std::string::npos;
}

TEST(Registry, RefusesWhatItDoesNotKnowWithTheChoices) {
  const std::string unknown = refusal("lookup | lockup");
  EXPECT_TRUE(says(unknown, "`lockup` (column 10)")) << unknown;
  EXPECT_TRUE(says(unknown, "lookup, ngram, model, stage, self or head")) << unknown;
  const std::string option = refusal("stage(d.gguf, lookup, notes=3)");
  EXPECT_TRUE(says(option, "nodes, depth or width, not `notes`")) << option;
  const std::string value = refusal("stage(d.gguf, lookup, nodes=many)");
  EXPECT_TRUE(says(value, "nodes=many should be a whole number from 0 to 63")) << value;
}

TEST(Registry, RefusesMissingAndSpareArguments) {
  EXPECT_TRUE(says(refusal("model"), "takes 1 file and was given 0; write model(DRAFT.gguf, width=FACTOR)"));
  EXPECT_TRUE(says(refusal("stage(d.gguf)"), "needs a mix of drafters under it"));
  EXPECT_TRUE(says(refusal("model(d.gguf, lookup)"), "takes no inner mix"));
}

TEST(Registry, AMixIsCheckedWithoutAModelAsItIsWhenItIsMade) {
  const auto checked = [](std::string_view expression, bool files) {
    const Status right = check_mix(*parse_drafters(expression), files);
    return right ? "" : right.error().message;
  };
  for (const char* wrong :
       {"lookup | lockup", "stage(d.gguf, lookup, notes=3)", "stage(d.gguf, lookup(max=1))", "stage(d.gguf)",
        "model", "self", "lookup(max=8)"}) {
    EXPECT_NE(checked(wrong, false), "") << wrong;
    if (!says(wrong, "d.gguf, lookup(")) {  // what is inside is made last
      EXPECT_EQ(checked(wrong, false), refusal(wrong));
    }
  }
  EXPECT_EQ(checked("stage(nowhere.gguf, lookup) | ngram(nowhere.ngram)", false), "");
  EXPECT_TRUE(says(checked("lookup | stage(nowhere.gguf, lookup)", true), "nowhere.gguf"));
}

TEST(Registry, RefusesADraftOfAnotherVocabularyWithTheReason) {
  const std::string sentence = refusal("model(d.gguf)");
  EXPECT_TRUE(says(sentence, "d.gguf cannot guess for this model: ")) << sentence;
}

TEST(Registry, RefusesAMixThatIsTooWide) {
  EXPECT_TRUE(says(refusal("lookup | lookup"), "more than one drafter that chooses the mixer's weights"));
  EXPECT_TRUE(says(refusal("lookup | lookup | lookup | lookup | lookup"), "the mixer can weigh 96"));
}

TEST(Registry, ACustomDrafterNeedsANameOfItsOwnThatTheExpressionCanSay) {
  struct Silent : CustomDrafter {
    Result<std::vector<Guess>> propose(const DraftPlace&) override { return std::vector<Guess>{}; }
  };
  const auto silent = std::make_shared<Silent>();
  const auto wrong = [&](const std::vector<NamedDrafter>& drafters) {
    const Status right = check_custom_drafters(drafters);
    return right ? "" : right.error().message;
  };
  EXPECT_EQ(wrong({{"mine", silent}, {"mine-2", silent}}), "");
  EXPECT_TRUE(says(wrong({{"lookup", silent}}), "`lookup` has the name of a built-in one"));
  for (const char* name : {"", "none", "Mine", "2nd", "my drafter", "mine()", "a | b"})
    EXPECT_TRUE(says(wrong({{name, silent}}), "should be one word")) << name;
  EXPECT_TRUE(says(wrong({{"mine", silent}, {"mine", silent}}), "two custom drafters `mine`"));
  EXPECT_TRUE(says(wrong({{"mine", nullptr}}), "`mine` is null"));
}

TEST(Registry, AnEmptyMixIsNoGrower) {
  const auto grower = make_grower({}, {});
  ASSERT_TRUE(grower.has_value());
  EXPECT_EQ(*grower, nullptr);
}

TEST(Registry, MakesAMix) { EXPECT_EQ(refusal("lookup"), ""); }

}  // namespace
}  // namespace coppice::core
