#include "draft/expression.h"

#include <gtest/gtest.h>

namespace coppice::core {
namespace {

std::string round_trip(std::string_view text) {
  const auto mix = parse_drafters(text);
  if (!mix) return mix.error().message;
  const std::string written = to_string(*mix);
  const auto again = parse_drafters(written);
  EXPECT_TRUE(again) << written;
  EXPECT_EQ(to_string(*again), written);
  return written;
}

TEST(Expression, AStageHasAFileAndAMixOfItsOwn) {
  const auto mix = parse_drafters(" stage( draft.gguf ,ngram(code.ngram)|lookup )| lookup ");
  ASSERT_TRUE(mix) << mix.error().message;
  ASSERT_EQ(mix->size(), 2u);
  const DrafterNode& stage = (*mix)[0];
  EXPECT_EQ(stage.name, "stage");
  EXPECT_EQ(stage.column, 2);
  EXPECT_EQ(stage.files, std::vector<std::string>{"draft.gguf"});
  ASSERT_EQ(stage.inner.size(), 2u);
  EXPECT_EQ(stage.inner[0].name, "ngram");
  EXPECT_EQ(stage.inner[0].files, std::vector<std::string>{"code.ngram"});
  EXPECT_EQ(stage.inner[0].column, 21);
  EXPECT_EQ(stage.inner[1].name, "lookup");
  EXPECT_EQ((*mix)[1].name, "lookup");
  EXPECT_EQ((*mix)[1].column, 49);
  EXPECT_EQ(to_string(*mix), "stage(draft.gguf, ngram(code.ngram) | lookup) | lookup");
}

TEST(Expression, NoneIsAnEmptyMixAndStandsAlone) {
  const auto mix = parse_drafters(" none ");
  ASSERT_TRUE(mix);
  EXPECT_TRUE(mix->empty());
  EXPECT_EQ(to_string(*mix), "none");
  EXPECT_NE(round_trip("none | lookup").find("column 1"), std::string::npos);
  EXPECT_NE(round_trip("lookup | none").find("column 10"), std::string::npos);
  EXPECT_NE(round_trip("stage(a.gguf, none)").find("column 15"), std::string::npos);
}

TEST(Expression, OptionsAreKeyAndValue) {
  const auto mix = parse_drafters("lookup(min = 2, max=\"1 2\", ./x=y)");
  ASSERT_TRUE(mix) << mix.error().message;
  const std::vector<std::pair<std::string, std::string>> options{{"min", "2"}, {"max", "1 2"}};
  EXPECT_EQ((*mix)[0].options, options);
  EXPECT_EQ((*mix)[0].files, std::vector<std::string>{"./x=y"});
}

TEST(Expression, QuotesHoldAnyPathAndAreWrittenWhereNeeded) {
  const auto mix = parse_drafters(R"(ngram("my \"best\", C:\\x|(1).ngram", "code", "a=b", c.d=e))");
  ASSERT_TRUE(mix) << mix.error().message;
  const std::vector<std::string> files{R"(my "best", C:\x|(1).ngram)", "code", "a=b", "c.d=e"};
  EXPECT_EQ((*mix)[0].files, files);
  EXPECT_EQ(parse_drafters(to_string(*mix))->at(0).files, files);
  EXPECT_EQ(round_trip("model(\"plain.gguf\")"), "model(plain.gguf)");
  EXPECT_EQ(round_trip("model(\"word\")"), "model(\"word\")");
}

TEST(Expression, AWordIsADrafterAndAnythingElseAPath) {
  const auto mix = parse_drafters("stage(lookup, Draft, draft-1.gguf, dir/ngram, 7b)");
  ASSERT_TRUE(mix) << mix.error().message;
  EXPECT_EQ((*mix)[0].inner.size(), 1u);
  const std::vector<std::string> files{"Draft", "draft-1.gguf", "dir/ngram", "7b"};
  EXPECT_EQ((*mix)[0].files, files);
}

TEST(Expression, MistakesAreSaidWithTheirColumn) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"", "drafters, column 1: expected the name of a drafter"},
      {"lookup |", "drafters, column 9: expected the name of a drafter"},
      {"lookup lookup", "drafters, column 8: expected `|`"},
      {"lookup)", "drafters, column 7: expected `|`"},
      {"ngram(a.ngram", "drafters, column 14: expected `,` or the `)` of `ngram(`"},
      {"ngram(a.ngram,)", "drafters, column 15: expected a file, a drafter or key=value"},
      {"ngram(a.ngram b.ngram)", "drafters, column 15: expected `,`"},
      {"ngram(\"a.ngram)", "drafters, column 7: this quote is never closed"},
      {"ngram(\"\")", "drafters, column 7: there is nothing in the quotes"},
      {"lookup(min=)", "drafters, column 12: expected a value"},
      {"lookup(min=1, min=2)", "drafters, column 15: `min` is given twice"},
      {"stage(a.gguf, lookup, lookup)", "drafters, column 23: `stage` takes one mix"},
      {"Lookup", "drafters, column 1: expected the name"},
  };
  for (const auto& [text, message] : mistakes)
    EXPECT_EQ(round_trip(text).rfind(message, 0), 0u) << text << ": " << round_trip(text);
}

TEST(Expression, LengthNestingAndNumberAreBounded) {
  const auto nested = [](int depth) {
    std::string text = "lookup";
    for (int i = 0; i < depth; ++i) text = "stage(a.gguf, " + text + ")";
    return text;
  };
  EXPECT_EQ(round_trip(nested(8)), nested(8));
  EXPECT_NE(round_trip(nested(9)).find("nested more than 8 deep"), std::string::npos);
  EXPECT_NE(round_trip(nested(250)).find("nested"), std::string::npos);
  std::string many = "lookup";
  for (int i = 1; i < 32; ++i) many += " | lookup";
  EXPECT_EQ(round_trip(many), many);
  EXPECT_NE(round_trip(many + "| lookup").find("more than 32"), std::string::npos);
  EXPECT_NE(round_trip("lookup(" + std::string(5000, 'A') + ")").find("at most 4096"), std::string::npos);
}

TEST(Expression, ACallIsOneNameWithItsArguments) {
  const DrafterNode call = *parse_call(" adaptive-paper( tau=0.6, gate = \"a gate\" ) ", "policy");
  EXPECT_EQ(call.name, "adaptive-paper");
  ASSERT_EQ(call.options.size(), 2u);
  EXPECT_EQ(call.options[0].second, "0.6");
  EXPECT_EQ(call.options[1].second, "a gate");
  EXPECT_EQ(parse_call("", "policy").error().message, "policy, column 1: expected a name");
  EXPECT_EQ(parse_call("auto | fixed", "policy").error().message, "policy, column 6: expected the end");
}

}  // namespace
}  // namespace coppice::core
