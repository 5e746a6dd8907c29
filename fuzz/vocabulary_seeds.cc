// Vocabularies of every family of tokenizers: all bytes, a handful of tokens, one with a chat template.
#include <cmath>

#include "gguf/writer.h"
#include "seeds.h"
#include "text/split_rules.h"
#include "text/test_vocabulary.h"

namespace coppice::core {
namespace {

gguf::Writer writer_of(const Vocabulary& vocabulary) {
  gguf::Writer writer;
  writer.add_text("tokenizer.ggml.model", vocabulary.model);
  writer.add_text("tokenizer.ggml.pre", vocabulary.pre);
  writer.add_texts("tokenizer.ggml.tokens", vocabulary.tokens);
  std::vector<std::int32_t> kinds;
  for (const TokenKind kind : vocabulary.kinds) kinds.push_back(static_cast<std::int32_t>(kind));
  writer.add_i32s("tokenizer.ggml.token_type", kinds);
  if (vocabulary.scores.empty()) {
    writer.add_texts("tokenizer.ggml.merges", vocabulary.merges);
  } else {
    writer.add_f32s("tokenizer.ggml.scores", vocabulary.scores);
    writer.add_bool("tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix);
    writer.add_bool("tokenizer.ggml.remove_extra_whitespaces", vocabulary.remove_extra_whitespaces);
  }
  if (vocabulary.bos != kNoToken) writer.add_i32("tokenizer.ggml.bos_token_id", vocabulary.bos);
  if (vocabulary.eos != kNoToken) writer.add_i32("tokenizer.ggml.eos_token_id", vocabulary.eos);
  if (vocabulary.unknown != kNoToken) writer.add_i32("tokenizer.ggml.unknown_token_id", vocabulary.unknown);
  if (!vocabulary.chat_template.empty()) writer.add_text("tokenizer.chat_template", vocabulary.chat_template);
  return writer;
}

Vocabulary tiny() {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "smollm";
  vocabulary.tokens = {"a", "b", "ab", "abb", "\u0120", "<u>", "<|im_start|>", "<|im_end|>", "?"};
  vocabulary.kinds.assign(vocabulary.tokens.size(), TokenKind::normal);
  vocabulary.kinds[5] = TokenKind::user_defined;
  vocabulary.kinds[6] = vocabulary.kinds[7] = TokenKind::control;
  vocabulary.kinds[8] = TokenKind::unknown;
  vocabulary.merges = {"a b", "ab b"};
  vocabulary.unknown = 8;
  vocabulary.chat_template = "{{ '<|im_start|>system\\nab<|im_end|>\\n' }}";
  return vocabulary;
}

// A character map with a trie of 256 units that maps "a" to "b".
std::vector<std::uint8_t> small_map() {
  std::vector<std::uint8_t> map(4 + 1024, 0);
  map[1] = 4;
  const auto unit = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) map[4 + 4 * at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  };
  unit(0, 0x80u << 10);
  unit(0x80 ^ 'a', static_cast<std::uint32_t>(0x80 ^ 'a' ^ 0x40) << 10 | 0x100u | 'a');
  unit(0x40, 0x80000000u);
  map.insert(map.end(), {'b', 0});
  return map;
}

void write_sentencepiece(const std::string& folder) {
  for (const char* model : {"llama", "t5"}) {
    Vocabulary vocabulary = testing::small_pieces();
    vocabulary.model = model;
    testing::add_piece(vocabulary, "lo w", 0, TokenKind::user_defined);
    testing::add_piece(vocabulary, "hel", -1, TokenKind::unused);
    write_seed(folder, model, writer_of(vocabulary).to_bytes());
    vocabulary.remove_extra_whitespaces = true;
    gguf::Writer writer = writer_of(vocabulary);
    writer.add_u8s("tokenizer.ggml.precompiled_charsmap", small_map());
    write_seed(folder, std::string(model) + "-map", writer.to_bytes());
  }
}

// Keys of other types, counts and values than the tokenizer's: the last value of a key counts.
void write_wrong(const std::string& folder) {
  const auto write = [&](const char* name, const Vocabulary& vocabulary, const auto& change) {
    gguf::Writer writer = writer_of(vocabulary);
    change(writer);
    write_seed(folder, std::string("wrong-") + name, writer.to_bytes());
  };
  using gguf::Writer;
  const Vocabulary bytes = tiny(), pieces = testing::small_pieces();
  write("tokens-numbers", bytes, [](Writer& w) { w.add_u32s("tokenizer.ggml.tokens", {1, 2, 3}); });
  write("tokens-none", bytes, [](Writer& w) { w.add_texts("tokenizer.ggml.tokens", {}); });
  write("tokens-twice", bytes,
        [](Writer& w) { w.add_texts("tokenizer.ggml.tokens", std::vector<std::string>(9, "a")); });
  write("types-floats", bytes, [](Writer& w) { w.add_f32s("tokenizer.ggml.token_type", {1, 1}); });
  write("types-few", bytes, [](Writer& w) { w.add_i32s("tokenizer.ggml.token_type", {1, 1}); });
  write("types-unknown", bytes,
        [](Writer& w) { w.add_i32s("tokenizer.ggml.token_type", std::vector<std::int32_t>(9, -1)); });
  write("merges-text", bytes, [](Writer& w) { w.add_text("tokenizer.ggml.merges", "a b"); });
  write("merges-broken", bytes, [](Writer& w) {
    w.add_texts("tokenizer.ggml.merges", {"a", " b", "a b c"});
  });
  write("merges-of-nothing", bytes, [](Writer& w) { w.add_texts("tokenizer.ggml.merges", {"q r"}); });
  write("end-minus", bytes, [](Writer& w) { w.add_i32("tokenizer.ggml.eos_token_id", -2); });
  write("end-beyond", bytes, [](Writer& w) { w.add_u64("tokenizer.ggml.eos_token_id", ~0ull); });
  write("end-text", bytes, [](Writer& w) { w.add_text("tokenizer.ggml.eos_token_id", "2"); });
  write("rule-unknown", bytes, [](Writer& w) { w.add_text("tokenizer.ggml.pre", "smolln"); });
  write("model-unknown", bytes, [](Writer& w) { w.add_text("tokenizer.ggml.model", "bert"); });
  write("scores-whole", pieces, [](Writer& w) { w.add_i32s("tokenizer.ggml.scores", {1, 2}); });
  write("scores-endless", pieces, [&](Writer& w) {
    w.add_f32s("tokenizer.ggml.scores", std::vector<float>(pieces.tokens.size(), -INFINITY));
  });
  write("map-of-a-byte", pieces, [](Writer& w) { w.add_u8s("tokenizer.ggml.precompiled_charsmap", {9}); });
  write("map-past-its-end", pieces, [](Writer& w) {
    w.add_u8s("tokenizer.ggml.precompiled_charsmap", std::vector<std::uint8_t>(64, 0xff));
  });
  gguf::Writer hash;
  hash.add_u64("coppice.vocabulary_hash", 12);
  write_seed(folder, "hash", hash.to_bytes());
}

void write_seeds(const std::string& folder) {
  write_wrong(folder);
  for (const SplitRule& rule : split_rules())
    write_seed(folder, std::string(rule.name),
               writer_of(testing::small_vocabulary(std::string(rule.name))).to_bytes());
  write_sentencepiece(folder);
  gguf::Writer small = writer_of(tiny());
  write_seed(folder, "tiny", small.to_bytes());
  small.add_u32("tokenizer.ggml.eot_token_id", 7);
  small.add_bool("tokenizer.ggml.add_bos_token", true);
  small.add_u32("tokenizer.ggml.bos_token_id", 6);
  write_seed(folder, "begins", small.to_bytes());
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seeds(arguments[1]);
}
