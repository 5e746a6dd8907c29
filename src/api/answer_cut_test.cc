// Where an answer that is measured ends. Tokens are those of a small vocabulary of bytes.
#include <coppice/bench.h>
#include <coppice/tools.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "base/os.h"
#include "model/random_model.h"

namespace coppice {
namespace {

class AnswerCuts : public testing::Test {
 protected:
  void SetUp() override {
    const auto bytes = *core::random_model({});
    ASSERT_TRUE(core::write_file(path_, [&](const core::Append& append) { return append(bytes); }));
    auto tokenizer = Tokenizer::load(path_);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    tokenizer_ = std::make_unique<Tokenizer>(*tokenizer);
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::vector<Token> ids(const std::string& text) const { return tokenizer_->encode(text, false, false); }
  // The text that counts, and why it ends: "...|why".
  std::string cut(const std::vector<Token>& answer, AnswerForm form) const {
    const AnswerCut found = cut_answer(*tokenizer_, answer, form);
    EXPECT_LE(found.tokens, answer.size());
    return tokenizer_->decode(std::span(answer).first(found.tokens)) + "|" + found.why;
  }
  std::string code(const std::string& text) const { return cut(ids(text), AnswerForm::code); }
  std::string chat(const std::string& text) const { return cut(ids(text), AnswerForm::chat); }

  std::string path_ = testing::TempDir() + "coppice_answer_cut_" + std::to_string(::getpid()) + ".gguf";
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(AnswerCuts, AFunctionEndsBeforeTheFirstLineThatIsNotIndented) {
  EXPECT_EQ(code("  a = 1\n\n  return a\n\ndef g(x):\n  b\n"), "  a = 1\n\n  return a\n\n|function");
  EXPECT_EQ(code("  a = 1\n# next"), "  a = 1\n|function");
  EXPECT_EQ(code("\ndef f(x):\n  return x\n\ndef g"), "\ndef f(x):\n  return x\n\n|function");  // begun again
  EXPECT_EQ(code("import a\n \nimport b\n"), "import a\n \nimport b\n|limit");
  EXPECT_EQ(code("  return f(\n    1,\n)\n  b\n"), "  return f(\n    1,\n)\n  b\n|limit");
  EXPECT_EQ(code("still the first line"), "still the first line|limit");
}

TEST_F(AnswerCuts, AChatAnswerGoesOnAfterLinesThatAreNotIndented) {
  EXPECT_EQ(chat("one\ntwo\n"), "one\ntwo\n|limit");
}

TEST_F(AnswerCuts, TheEndOfTextIsTheLastTokenThatCounts) {
  std::vector<Token> answer = ids("  a\n");
  answer.push_back(tokenizer_->eos());
  const std::size_t whole = answer.size();
  for (const Token t : ids("\nb")) answer.push_back(t);
  for (const AnswerForm form : {AnswerForm::chat, AnswerForm::code}) {
    const AnswerCut found = cut_answer(*tokenizer_, answer, form);
    EXPECT_EQ(found.tokens, whole);
    EXPECT_EQ(found.why, "end of text");
  }
}

TEST_F(AnswerCuts, ASequenceThatComesAThirdTimeEndsTheAnswerWhereItBegins) {
  const auto sequence = [](std::size_t n, Token from) {
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < n; ++i) tokens.push_back(from + static_cast<Token>(i));
    return tokens;
  };
  const auto repeated = [&](std::size_t period, std::size_t tokens) {
    std::vector<Token> answer = sequence(5, 200);  // a beginning that does not repeat
    const std::vector<Token> part = sequence(period, 100);
    for (std::size_t i = 0; i < tokens; ++i) answer.push_back(part[i % period]);
    return answer;
  };
  const auto length = [&](const std::vector<Token>& answer) {
    return cut_answer(*tokenizer_, answer, AnswerForm::chat).tokens;
  };
  EXPECT_EQ(length(repeated(20, 90)), 5u + 2 * 20);  // where the third round begins
  EXPECT_EQ(length(repeated(4, 90)), 5u + 2 * 4);
  EXPECT_EQ(length(repeated(20, 2 * 20 + kRepeat)), 5u + 2 * 20);
  EXPECT_EQ(length(repeated(20, 2 * 20 + kRepeat - 1)), 5u + 2 * 20 + kRepeat - 1);  // not yet
  EXPECT_EQ(cut_answer(*tokenizer_, repeated(20, 90), AnswerForm::chat).why, "repeats");
  EXPECT_EQ(length({}), 0u);
}

TEST_F(AnswerCuts, AFileHasTheSameHashAlwaysAndAnotherWhenAByteChanges) {
  const auto hash = file_hash(path_);
  ASSERT_TRUE(hash) << hash.error().message;
  EXPECT_EQ(hash->size(), 32u);
  EXPECT_EQ(*hash, *file_hash(path_));
  auto bytes = *core::random_model({});
  bytes.back() ^= std::byte{1};
  ASSERT_TRUE(core::write_file(path_, [&](const core::Append& append) { return append(bytes); }));
  EXPECT_NE(*hash, *file_hash(path_));
  EXPECT_FALSE(file_hash(path_ + ".none"));
}

}  // namespace
}  // namespace coppice
