#include "text/vocabulary.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "gguf/writer.h"
#include "text/tokenizer.h"

namespace coppice::core {
namespace {

// Keys can be replaced: a later one of the same name wins.
gguf::Writer good_file() {
  gguf::Writer writer;
  writer.add_text("general.architecture", "llama");
  writer.add_text("tokenizer.ggml.model", "gpt2");
  writer.add_text("tokenizer.ggml.pre", "smollm");
  writer.add_texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_end|>", "<|endoftext|>", "<|eot_id|>"});
  writer.add_i32s("tokenizer.ggml.token_type", {1, 1, 1, 3, 3, 1});
  writer.add_texts("tokenizer.ggml.merges", {"a b"});
  writer.add_u32("tokenizer.ggml.bos_token_id", 0);
  writer.add_u32("tokenizer.ggml.eos_token_id", 3);
  writer.add_u32("tokenizer.ggml.unknown_token_id", 4);
  writer.add_u32("tokenizer.ggml.padding_token_id", 2);
  writer.add_text("tokenizer.chat_template", "{{ template }}");
  writer.add_text("tokenizer.chat_template.tool_use", "{{ tools }}");
  return writer;
}

Result<Vocabulary> read(const gguf::Writer& writer) {
  const auto bytes = writer.to_bytes();
  const auto file = gguf::File::parse(bytes, "test.gguf");
  if (!file) return tl::unexpected(file.error());
  return Vocabulary::read(**file);
}

std::string error_after(const std::function<void(gguf::Writer&)>& change) {
  gguf::Writer writer = good_file();
  change(writer);
  const auto vocabulary = read(writer);
  return vocabulary ? std::string() : vocabulary.error().message;
}

bool names(const std::string& message, std::string_view key) {
  return message.find("test.gguf") != std::string::npos && message.find(key) != std::string::npos;
}

TEST(Vocabulary, TokensAroundAGapHaveTwoNamesInFiles) {
  for (const auto& names :
       {std::array{"fim_pre", "fim_suf", "fim_mid"}, std::array{"prefix", "suffix", "middle"}}) {
    gguf::Writer writer = good_file();
    for (std::uint32_t i = 0; i < 3; ++i)
      writer.add_u32(fmt::format("tokenizer.ggml.{}_token_id", names[i]), i + 1);
    const auto vocabulary = read(writer);
    ASSERT_TRUE(vocabulary) << vocabulary.error().message;
    EXPECT_EQ(vocabulary->infill.before, 1);
    EXPECT_EQ(vocabulary->infill.behind, 2);
    EXPECT_EQ(vocabulary->infill.middle, 3);
  }
  EXPECT_EQ(read(good_file())->infill.before, kNoToken);
}

TEST(Vocabulary, ReadsWhatTheFileStates) {
  const auto vocabulary = read(good_file());
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_EQ(vocabulary->pre, "smollm");
  EXPECT_EQ(vocabulary->tokens.size(), 6u);
  EXPECT_EQ(vocabulary->tokens[2], "ab");
  EXPECT_EQ(vocabulary->kinds[3], TokenKind::control);
  EXPECT_EQ(vocabulary->merges, std::vector<std::string>{"a b"});
  EXPECT_EQ(vocabulary->bos, 0);
  EXPECT_EQ(vocabulary->eos, 3);
  EXPECT_EQ(vocabulary->unknown, 4);
  EXPECT_EQ(vocabulary->padding, 2);
  EXPECT_EQ(vocabulary->chat_template, "{{ template }}");
  ASSERT_EQ(vocabulary->named_templates.size(), 1u);
  EXPECT_EQ(vocabulary->named_templates[0],
            std::make_pair(std::string("tool_use"), std::string("{{ tools }}")));
  EXPECT_FALSE(vocabulary->add_bos);
  EXPECT_TRUE(Tokenizer::make(*vocabulary));
}

TEST(Vocabulary, TextEndsAtTheKeysAndAtControlTokensSoNamed) {
  // <|eot_id|> is an ordinary token here.
  EXPECT_EQ(read(good_file())->end_tokens, (std::vector<Token>{3, 4}));
  gguf::Writer writer = good_file();
  writer.add_u32("tokenizer.ggml.eot_token_id", 5);
  writer.add_u32("tokenizer.ggml.eom_token_id", 1);
  EXPECT_EQ(read(writer)->end_tokens, (std::vector<Token>{1, 3, 4, 5}));
}

TEST(Vocabulary, WhatAFileMayLeaveOutHasAMeaning) {
  gguf::Writer writer;
  writer.add_text("tokenizer.ggml.model", "gpt2");
  writer.add_texts("tokenizer.ggml.tokens", {"a", "b"});
  writer.add_texts("tokenizer.ggml.merges", {});
  const auto vocabulary = read(writer);
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->pre, "");
  EXPECT_EQ(vocabulary->kinds, std::vector<TokenKind>(2, TokenKind::normal));
  EXPECT_EQ(vocabulary->bos, kNoToken);
  EXPECT_EQ(vocabulary->eos, kNoToken);
  EXPECT_EQ(vocabulary->chat_template, "");
  EXPECT_TRUE(vocabulary->end_tokens.empty());
}

TEST(Vocabulary, WhatIsMissingIsNamed) {
  gguf::Writer writer;
  EXPECT_TRUE(names(read(writer).error().message, "tokenizer.ggml.model"));
  writer.add_text("tokenizer.ggml.model", "gpt2");
  EXPECT_TRUE(names(read(writer).error().message, "tokenizer.ggml.tokens"));
  writer.add_texts("tokenizer.ggml.tokens", {"a"});
  EXPECT_TRUE(names(read(writer).error().message, "tokenizer.ggml.merges"));
}

TEST(Vocabulary, WhatContradictsItselfIsNamed) {
  using gguf::Writer;
  EXPECT_TRUE(names(error_after([](Writer& w) {
                      w.add_i32s("tokenizer.ggml.token_type", {1, 1});
                    }),
                    "tokenizer.ggml.token_type has 2 entries; tokenizer.ggml.tokens has 6"));
  EXPECT_TRUE(names(error_after([](Writer& w) {
                      w.add_i32s("tokenizer.ggml.token_type", {1, 1, 9, 1, 1, 1});
                    }),
                    "token 2 the type 9"));
  EXPECT_TRUE(names(error_after([](Writer& w) { w.add_u32("tokenizer.ggml.eos_token_id", 6); }),
                    "tokenizer.ggml.eos_token_id is 6"));
  EXPECT_TRUE(names(error_after([](Writer& w) { w.add_i32("tokenizer.ggml.bos_token_id", -1); }),
                    "tokenizer.ggml.bos_token_id is -1"));
  EXPECT_TRUE(names(error_after([](Writer& w) { w.add_text("tokenizer.ggml.bos_token_id", "a"); }),
                    "tokenizer.ggml.bos_token_id"));
  EXPECT_TRUE(names(error_after([](Writer& w) { w.add_text("tokenizer.ggml.tokens", "a"); }),
                    "tokenizer.ggml.tokens must be an array of strings"));
  EXPECT_TRUE(names(error_after([](Writer& w) { w.add_texts("tokenizer.ggml.tokens", {}); }),
                    "tokenizer.ggml.tokens"));
}

TEST(Vocabulary, AMergeIsTwoTokensWithOneSpaceBetween) {
  for (const char* merge : {"ab", "a  b", " b", "a ", "", "a b c"}) {
    EXPECT_TRUE(names(error_after([&](gguf::Writer& w) {
                        w.add_texts("tokenizer.ggml.merges", {"a b", merge});
                      }),
                      "tokenizer.ggml.merges entry 1"))
        << merge;
  }
}

TEST(Vocabulary, ABeginTokenToAddMustExist) {
  gguf::Writer writer;
  writer.add_text("tokenizer.ggml.model", "gpt2");
  writer.add_texts("tokenizer.ggml.tokens", {"a"});
  writer.add_texts("tokenizer.ggml.merges", {});
  writer.add_bool("tokenizer.ggml.add_bos_token", true);
  EXPECT_TRUE(names(read(writer).error().message, "tokenizer.ggml.add_bos_token"));
  writer.add_u32("tokenizer.ggml.bos_token_id", 0);
  EXPECT_TRUE(read(writer)->add_bos);
}

TEST(Vocabulary, ABeginTokenIsAddedWhereTheFamilyDoesSoAndTheFileIsSilent) {
  gguf::Writer writer = good_file();
  EXPECT_FALSE(read(writer)->add_bos);
  writer.add_text("tokenizer.ggml.pre", "llama-bpe");
  EXPECT_TRUE(read(writer)->add_bos);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
  EXPECT_FALSE(read(writer)->add_bos);
}

TEST(Vocabulary, MessagesStayShortAndOnOneLine) {
  const std::string message = error_after([](gguf::Writer& w) {
    w.add_texts("tokenizer.ggml.merges", {"new\nline " + std::string(100000, 'x') + " y"});
  });
  EXPECT_LT(message.size(), 300u);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

// A draft may leave its tokens out and state their hash.
TEST(Vocabulary, ADraftMayHaveOnlyTheHashOfItsTokens) {
  const Vocabulary target = *read(good_file());
  gguf::Writer writer;
  writer.add_text("general.architecture", "llama");
  writer.add_u64("coppice.vocabulary_hash", vocabulary_hash(target.tokens));
  auto draft = read(writer);
  ASSERT_TRUE(draft) << draft.error().message;
  EXPECT_TRUE(draft->tokens.empty());
  EXPECT_TRUE(same_vocabulary(target, *draft));
  draft->hash = *draft->hash + 1;
  EXPECT_NE(same_vocabulary(target, *draft).error().message.find("made for one with the hash"),
            std::string::npos);
  const auto tokenizer = Tokenizer::make(*draft);
  ASSERT_FALSE(tokenizer);
  EXPECT_NE(tokenizer.error().message.find("only the hash of its vocabulary"), std::string::npos);
}

TEST(Vocabulary, AHashThatIsNoNumberIsRefused) {
  gguf::Writer writer;
  writer.add_text("general.architecture", "llama");
  writer.add_text("coppice.vocabulary_hash", "12");
  const auto draft = read(writer);
  ASSERT_FALSE(draft);
  EXPECT_NE(draft.error().message.find("coppice.vocabulary_hash must be a u64"), std::string::npos)
      << draft.error().message;
}

TEST(Vocabulary, TokensThatAreThereCountMoreThanTheirHash) {
  gguf::Writer writer = good_file();
  writer.add_u64("coppice.vocabulary_hash", 7);
  const auto vocabulary = read(writer);
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  EXPECT_FALSE(vocabulary->hash);
  EXPECT_EQ(vocabulary->tokens.size(), 6u);
}

TEST(Vocabulary, TheHashSeesEveryByteAndWhereTokensEnd) {
  const std::vector<std::string> a = {"ab", "c"}, b = {"a", "bc"}, c = {"ab", "d"};
  EXPECT_NE(vocabulary_hash(a), vocabulary_hash(b));
  EXPECT_NE(vocabulary_hash(a), vocabulary_hash(c));
  EXPECT_EQ(vocabulary_hash(a), vocabulary_hash(std::vector<std::string>{"ab", "c"}));
}

}  // namespace
}  // namespace coppice::core
