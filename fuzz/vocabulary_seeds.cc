// Vocabularies of both splitting rules: all bytes, a handful of tokens, one with a chat template.
#include "gguf/writer.h"
#include "seeds.h"
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
  writer.add_texts("tokenizer.ggml.merges", vocabulary.merges);
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

void write_seeds(const std::string& folder) {
  write_seed(folder, "gpt-2", writer_of(testing::small_vocabulary("gpt-2")).to_bytes());
  write_seed(folder, "smollm", writer_of(testing::small_vocabulary("smollm")).to_bytes());
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
