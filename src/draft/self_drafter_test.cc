#include "draft/self_drafter.h"

#include <gtest/gtest.h>

#include "model/testing.h"

namespace coppice::core {
namespace {

std::vector<int> blocks(std::string_view text) {
  const auto parsed = parse_blocks(text, 30);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? *parsed : std::vector<int>{};
}

std::string refused(std::string_view text) {
  const auto parsed = parse_blocks(text, 30);
  EXPECT_FALSE(parsed) << text;
  return parsed ? "" : parsed.error().message;
}

TEST(SelfDrafter, ReadsListsOfBlocks) {
  EXPECT_EQ(blocks("0-2,28-29"), (std::vector<int>{0, 1, 2, 28, 29}));
  EXPECT_EQ(blocks("28-29+3+0-1"), (std::vector<int>{0, 1, 3, 28, 29}));
  EXPECT_EQ(blocks("7-7"), (std::vector<int>{7}));
}

TEST(SelfDrafter, RefusesListsThatMakeNoSense) {
  EXPECT_EQ(refused("0-30"), "layers=0-30: there is no stretch 0-30; the blocks are numbered from 0 to 29");
  EXPECT_EQ(refused("5-2"), "layers=5-2: there is no stretch 5-2; the blocks are numbered from 0 to 29");
  EXPECT_EQ(refused("1-3+2"), "layers=1-3+2: block 2 is there twice");
  EXPECT_EQ(refused("3-"), "layers=3-: a stretch of blocks should be two numbers, as in 0-9");
  for (const char* text : {"", "+", "1+", "1,,2", "a", "1;2", "-1-3", "99999999999-3", "1-2-3"})
    EXPECT_NE(refused(text), "") << text;
}

class SelfExpression : public ::testing::Test {
 protected:
  std::string make(std::string_view expression) {
    const auto mix = parse_drafters(expression);
    if (!mix) return mix.error().message;
    DraftEnvironment environment;
    environment.vocabulary = &vocabulary_;
    environment.pool = &pool_;
    environment.target = testing::make_model({}, pool_);
    const auto grower = make_grower(*mix, environment);
    return grower ? "" : grower.error().message;
  }
  ThreadPool pool_{1};
  Vocabulary vocabulary_;
};

TEST_F(SelfExpression, IsMadeWithoutAFile) {
  EXPECT_EQ(make("self(layers=0-0)"), "");
  EXPECT_EQ(make("self(window=64)"), "");
  EXPECT_EQ(make("self(lookup, layers=\"0,1\", window=100, sink=0, nodes=4, depth=2) | lookup"), "");
}

TEST_F(SelfExpression, SaysWhatIsWrong) {
  EXPECT_NE(make("self").find("would be the model itself; say what it leaves out"), std::string::npos);
  EXPECT_NE(make("self(draft.gguf, layers=1-1)").find("takes 0 files and was given 1"), std::string::npos);
  EXPECT_NE(make("self(layers=3)").find("the model has 2 blocks"), std::string::npos);
  EXPECT_NE(make("self(layers=0)").find("the model has 2 blocks"), std::string::npos);
  EXPECT_NE(make("self(layers=1)").find("here the blocks must be named"), std::string::npos);
  EXPECT_NE(make("self(window=10)").find("window=10 should be a whole number from 64"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
