// Small right files, each with another part of the format in it, and files that are wrong in one place.
#include "gguf/bad_files_testing.h"
#include "gguf/writer.h"
#include "seeds.h"

namespace coppice::core {
namespace {

void add_keys(gguf::Writer& writer) {
  writer.add_text("general.architecture", "llama");
  writer.add_u32("llama.block_count", 2);
  writer.add_i32("llama.minus", -1);
  writer.add_u64("llama.large", 1ull << 40);
  writer.add_f32("llama.rope.freq_base", 10000.0f);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
  writer.add_texts("tokenizer.ggml.tokens", {"a", "", "bc"});
  writer.add_i32s("tokenizer.ggml.token_type", {1, 2, 3});
  writer.add_u32s("sizes", {7});
  writer.add_f32s("tokenizer.ggml.scores", {0.0f, -1.0f, 2.5f});
}

void write_seeds(const std::string& folder) {
  write_seed(folder, "empty", gguf::Writer().to_bytes());
  gguf::Writer keys;
  add_keys(keys);
  write_seed(folder, "keys", keys.to_bytes());
  keys.add_u32("general.alignment", 64);
  const std::vector<float> values(768, 0.5f);
  keys.add_values("blk.0.attn_q.weight", *find_format("Q4_1"), {32, 3, 2}, std::span(values).first(192));
  write_seed(folder, "aligned", keys.to_bytes());
  for (const Format& format : formats()) {
    gguf::Writer writer;
    writer.add_tensor("token_embd.weight", format, {256, 3}, std::vector<std::byte>(row_bytes(format, 768)));
    writer.add_values("output_norm.weight", formats()[0], {5}, std::span(values).first(5));
    write_seed(folder, std::string(format.name), writer.to_bytes());
  }
  for (const auto& bad : gguf::testing::bad_files()) write_seed(folder, "bad_" + bad.name, bad.bytes);
  // Other versions: the second differs in nothing but its number; big-endian files begin like this.
  std::vector<std::byte> other = keys.to_bytes();
  for (const unsigned char version : {0, 1, 2, 4}) {
    other[4] = static_cast<std::byte>(version);
    write_seed(folder, "version" + std::to_string(version), other);
  }
  other[4] = std::byte{0};
  other[7] = std::byte{3};
  write_seed(folder, "big_endian", other);
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seeds(arguments[1]);
}
