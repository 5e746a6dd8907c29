// The smallest random model of every architecture, with a window and experts where it may have them, and
// models whose keys say what cannot be.
#include <fmt/format.h>

#include <functional>

#include "gguf/writer.h"
#include "model/architectures.h"
#include "model/random_model.h"
#include "seeds.h"

namespace coppice::core {
namespace {

std::vector<std::byte> model_bytes(RandomModelOptions options, int hidden = 32) {
  options.vocab = 260;
  options.hidden = options.feed_forward = hidden;
  options.heads = options.kv_heads = 2;
  options.context_length = 8;
  options.formats = {"Q8_0", "F32"};
  auto bytes = random_model(options);
  if (bytes) return std::move(*bytes);
  std::fprintf(stderr, "%s\n", bytes.error().message.c_str());
  std::exit(1);
}

// A small llama whose file says something else in one place, after the faults that were published of other
// runtimes: sizes of nothing, below nothing and beyond all memory, of another type, and ones that the tensors
// do not have.
void write_wrong(const std::string& folder) {
  const std::vector<std::byte> bytes = model_bytes({});
  const auto file = *gguf::File::parse(bytes, "seed");
  const auto write = [&](const std::string& name, const std::function<void(gguf::Writer&)>& change) {
    gguf::Writer writer;
    for (const gguf::Key& key : file->keys()) writer.copy(key);
    for (const gguf::Tensor& tensor : file->tensors()) writer.copy(tensor);
    change(writer);
    write_seed(folder, "wrong-" + name, writer.to_bytes());
  };
  for (const std::string key :
       {"block_count", "embedding_length", "feed_forward_length", "context_length", "attention.head_count",
        "attention.head_count_kv", "attention.key_length", "rope.dimension_count", "expert_count"}) {
    write(key + "-none", [&](auto& w) { w.add_u32("llama." + key, 0); });
    write(key + "-minus", [&](auto& w) { w.add_i32("llama." + key, -1); });
    write(key + "-huge", [&](auto& w) { w.add_u64("llama." + key, ~0ull); });
    write(key + "-odd", [&](auto& w) { w.add_u32("llama." + key, 3); });
    write(key + "-text", [&](auto& w) { w.add_text("llama." + key, "2"); });
    write(key + "-list", [&](auto& w) { w.add_u32s("llama." + key, {2, 2}); });
  }
  const auto tokens = [](std::size_t count) { return std::vector<std::string>(count, "a"); };
  write("tokens-few", [&](auto& w) { w.add_texts("tokenizer.ggml.tokens", tokens(3)); });
  write("tokens-many", [&](auto& w) { w.add_texts("tokenizer.ggml.tokens", tokens(300)); });
  write("norm-nothing", [](auto& w) { w.add_f32("llama.attention.layer_norm_rms_epsilon", -1); });
  write("rope-base-nothing", [](auto& w) { w.add_f32("llama.rope.freq_base", 0); });
  write("rope-scaling-endless", [](auto& w) {
    w.add_text("llama.rope.scaling.type", "yarn");
    w.add_f32("llama.rope.scaling.factor", 1e38f);
    w.add_u32("llama.rope.scaling.original_context_length", 1);
  });
}

void write_model(const std::string& folder, const std::string& name, const RandomModelOptions& options,
                 int hidden = 32) {
  write_seed(folder, name, model_bytes(options, hidden));
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  namespace core = coppice::core;
  for (const core::Architecture& row : core::architectures()) {
    core::RandomModelOptions options;
    options.architecture = row.name;
    options.window = row.window_period > 0 ? 2 : 0;
    core::write_model(arguments[1], options.architecture, options);
  }
  core::RandomModelOptions experts;
  experts.experts = 3;
  core::write_model(arguments[1], "experts", experts);
  core::RandomModelOptions slim;
  slim.slim.factors = {0.5f, 1.0f};
  slim.slim.hidden = slim.slim.feed_forward = {32, 64};
  core::write_model(arguments[1], "slim", slim, 64);
  core::write_wrong(arguments[1]);
}
