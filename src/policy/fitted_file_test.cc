#include "policy/fitted_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "policy/adaptive_options.h"

namespace coppice::core {
namespace {

class FittedFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("coppice_fitted_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder_);
    std::ofstream(folder_ / "small.draft.adaptive") << "tau = 0.31\nstop = 0.11\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  DrafterMix mix(const std::string& text) const {
    std::string whole = text;
    for (std::size_t at; (at = whole.find("DIR")) != std::string::npos;)
      whole.replace(at, 3, folder_.string());
    return *parse_drafters(whole);
  }
  AdaptiveOptions options(const std::string& policy, const DrafterMix& mix) const {
    ChosenPolicy chosen = *choose_policy(policy);
    begin_with_fitted(mix, chosen);
    return *read_adaptive_options(chosen.expression);
  }

  std::filesystem::path folder_;
};

TEST_F(FittedFile, LiesBesideTheFirstDraftThatHasOne) {
  const std::string file = (folder_ / "small.draft.adaptive").string();
  EXPECT_EQ(fitted_file(mix("lookup | model(\"DIR/small.draft.gguf\", width=1)")), file);
  EXPECT_EQ(fitted_file(mix("head(\"DIR/other.gguf\") | stage(\"DIR/small.draft.gguf\", lookup)")), file);
  EXPECT_EQ(fitted_file(mix("model(\"DIR/other.gguf\") | ngram(\"DIR/small.draft.ngram\")")), "");
  EXPECT_EQ(fitted_file({}), "");
}

TEST_F(FittedFile, IsWhatAdaptiveFittedBeginsWithAndNobodyElse) {
  const DrafterMix drafts = mix("model(\"DIR/small.draft.gguf\")");
  EXPECT_EQ(options("adaptive-fitted", drafts).tau, 0.31);
  EXPECT_EQ(options("adaptive-fitted(stop=0.5)", drafts).tau, 0.31);
  EXPECT_EQ(options("adaptive-fitted(stop=0.5)", drafts).stop, 0.5) << "what is written out comes last";
  EXPECT_EQ(options("adaptive-paper", drafts).tau, AdaptiveOptions().tau);
}

TEST_F(FittedFile, IsNotLookedForWhereAnotherOneOrNoneIsNamed) {
  const DrafterMix drafts = mix("model(\"DIR/small.draft.gguf\")");
  std::ofstream(folder_ / "own") << "tau = 0.77\n";
  EXPECT_EQ(options("adaptive-fitted(from=\"" + (folder_ / "own").string() + "\")", drafts).tau, 0.77);
  EXPECT_EQ(options("adaptive-fitted(from=off)", drafts).tau, options("adaptive-fitted", {}).tau);
}

}  // namespace
}  // namespace coppice::core
