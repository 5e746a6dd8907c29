#include "engine/text_stream.h"

#include <gtest/gtest.h>

#include "model/random_model.h"
#include "text/test_vocabulary.h"

namespace coppice::core {
namespace {

// One token per byte: the random models' vocabulary has all 256.
class TextStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto bytes = random_model({});
    ASSERT_TRUE(bytes);
    auto file = gguf::File::parse(*bytes, "random");
    ASSERT_TRUE(file);
    auto vocabulary = Vocabulary::read(**file);
    ASSERT_TRUE(vocabulary);
    auto made = Tokenizer::make(std::move(*vocabulary));
    ASSERT_TRUE(made);
    tokenizer_ = *made;
  }

  // What is shown after each byte of `text`, joined by "|", and whether it stopped.
  std::string show(const std::string& text, std::vector<std::string> stops, bool* stopped = nullptr) {
    TextStream stream(*tokenizer_, std::move(stops), false);
    std::string joined;
    for (char byte : text) {
      std::string out;
      const auto tokens = tokenizer_->encode(std::string(1, byte));
      const bool stop = stream.push(tokens.at(0), out);
      joined += out + "|";
      if (stop) {
        if (stopped != nullptr) *stopped = true;
        break;
      }
    }
    std::string rest;
    stream.finish(rest);
    return joined + rest;
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(TextStreamTest, ShowsEveryTokenAtOnceWhereNothingIsHeldBack) { EXPECT_EQ(show("abc", {}), "a|b|c|"); }

TEST_F(TextStreamTest, HoldsBackTheBytesOfACharacterUntilItIsWhole) {
  EXPECT_EQ(show("a\xC3\xA9z", {}), "a||\xC3\xA9|z|");
}

TEST_F(TextStreamTest, HoldsBackWhatMayBecomeAStopString) {
  bool stopped = false;
  EXPECT_EQ(show("xENy", {"END"}, &stopped), "x|||ENy|");
  EXPECT_FALSE(stopped);
}

TEST_F(TextStreamTest, EndsBeforeTheStopString) {
  bool stopped = false;
  EXPECT_EQ(show("okENDmore", {"END"}, &stopped), "o|k||||");
  EXPECT_TRUE(stopped);
}

TEST_F(TextStreamTest, TheEarliestOfSeveralStopStringsWins) {
  EXPECT_EQ(show("abXYc", {"Yc", "XY"}), "a|b|||");
}

TEST_F(TextStreamTest, AnUnfinishedStopStringIsShownAtTheEnd) { EXPECT_EQ(show("aEN", {"END"}), "a|||EN"); }

TEST_F(TextStreamTest, BytesThatAreNoTextComeOutAsReplacement) {
  EXPECT_EQ(show("a\xFF"
                 "b",
                 {}),
            "a|\xEF\xBF\xBD|b|");
}

TEST_F(TextStreamTest, AStopStringInsideACharacterBoundary) {
  // The stop string is found in bytes; the text before it is whole.
  EXPECT_EQ(show("\xC3\xA9\n\nb", {"\n\n"}), "|\xC3\xA9|||");
}

// SentencePiece puts a space before a text; where the answer begins one, it is not shown.
TEST(TextStream, AnAnswerThatBeginsATextLosesTheSpaceThatEncodingAdds) {
  const auto tokenizer = *Tokenizer::make(testing::small_pieces());
  const auto tokens = tokenizer->encode("hello he");
  for (const bool begins : {true, false}) {
    TextStream stream(*tokenizer, {}, false, begins);
    std::string shown;
    for (const Token token : tokens) stream.push(token, shown);
    stream.finish(shown);
    EXPECT_EQ(shown, begins ? tokenizer->decode(tokens) : " hello he");
  }
}

}  // namespace
}  // namespace coppice::core
