#include "train/draft_file.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/check.h"
#include "model/architectures.h"
#include "train/draft_tensors.h"

namespace coppice::core::train {
namespace {

constexpr const char* kHidden = "coppice.slim.hidden";
constexpr const char* kFeedForward = "coppice.slim.feed_forward";
constexpr const char* kFactors = "coppice.slim.factors";
constexpr const char* kExitLayer = "coppice.slim.exit_layer";
constexpr const char* kExitWidth = "coppice.slim.exit_width";

std::string block_name(int block, const std::string& role) {
  return fmt::format("blk.{}.{}.weight", block, role);
}

// "attn_norm" at the widest, "attn_norm.288" at a narrower width.
std::string at_width(const char* role, const DraftShape& shape, int width) {
  if (width == shape.widest()) return role;
  return fmt::format("{}.{}", role, shape.hidden[static_cast<std::size_t>(width)]);
}

std::vector<std::uint32_t> unsigned_values(const std::vector<int>& values) {
  return {values.begin(), values.end()};
}

// What says how the target was made or packed, and is not true of the draft.
bool left_out(std::string_view key) {
  return key == "general.file_type" || key == "general.size_label" || key.substr(0, 8) == "coppice." ||
         key.substr(0, 20) == "general.quantization";
}

std::vector<std::int32_t> row_of_each_token(const SlimDraft& draft) {
  const torch::Tensor rows = draft.place(torch::arange(draft.shape().vocab, torch::kInt64)).to(torch::kInt32);
  const auto* begin = rows.data_ptr<std::int32_t>();
  return {begin, begin + rows.numel()};
}

void add_keys(const SlimDraft& draft, const gguf::File& target, const DraftFileOptions& options,
              gguf::Writer& writer) {
  const DraftShape& shape = draft.shape();
  for (const gguf::Key& key : target.keys()) {
    if (!left_out(key.name)) writer.copy(key);
  }
  const auto number = [&](const char* key, int value) {
    writer.add_u32(std::string("llama.") + key, static_cast<std::uint32_t>(value));
  };
  writer.add_text("general.name", fmt::format("{} (draft of {} layers)",
                                              target.text_or("general.name", "llama"), shape.layers));
  number("block_count", shape.layers);
  number("embedding_length", shape.hidden.back());
  number("feed_forward_length", shape.feed_forward.back());
  number("attention.head_count", shape.heads);
  number("attention.head_count_kv", shape.kv_heads);
  number("attention.key_length", shape.head_dim);
  number("attention.value_length", shape.head_dim);
  number("rope.dimension_count", shape.head_dim);
  if (shape.widths() > 1 || shape.exit_layer > 0) {
    writer.add_u32s(kHidden, unsigned_values(shape.hidden));
    writer.add_u32s(kFeedForward, unsigned_values(shape.feed_forward));
    writer.add_f32s(kFactors, {shape.factors.begin(), shape.factors.end()});
    writer.add_u32(kExitLayer, static_cast<std::uint32_t>(shape.exit_layer));
    writer.add_u32(kExitWidth, static_cast<std::uint32_t>(shape.exit_width));
  }
  if (shape.head_rows < shape.vocab) writer.add_i32s(kHeadTokensKey, draft.head_tokens());
  if (draft.shares_embedding()) writer.add_i32s(kEmbeddingRowsKey, row_of_each_token(draft));
  for (const DraftNote& note : options.notes) writer.add_text("coppice.train." + note.name, note.value);
}

Result<const Format*> format_named(const char* what, const std::string& name, const DraftShape& shape) {
  std::vector<int> widths = shape.hidden;
  widths.insert(widths.end(), shape.feed_forward.begin(), shape.feed_forward.end());
  const auto format = format_to_write(name, widths);
  if (!format) return fail(fmt::format("the format of the {}: {}", what, format.error().message));
  return format;
}

void add_gains(const std::vector<torch::Tensor>& gains, const char* role, int block, const DraftShape& shape,
               gguf::Writer& writer) {
  for (int w = 0; w < shape.widths(); ++w) {
    const std::string name = at_width(role, shape, w);
    add_tensor(writer, block < 0 ? name + ".weight" : block_name(block, name), *find_format("F32"),
               gains[static_cast<std::size_t>(w)]);
  }
}

// The matrices of a block by their roles in files.
struct Role {
  const char* name;
  torch::Tensor DraftBlock::*member;
};
constexpr Role kRoles[] = {{"attn_q", &DraftBlock::wq},     {"attn_k", &DraftBlock::wk},
                           {"attn_v", &DraftBlock::wv},     {"attn_output", &DraftBlock::wo},
                           {"ffn_gate", &DraftBlock::gate}, {"ffn_up", &DraftBlock::up},
                           {"ffn_down", &DraftBlock::down}};

// Heads whose rows a matrix holds in another order in training; 0: none.
int turned_heads(const Role& role, const DraftShape& shape) {
  if (role.member == &DraftBlock::wq) return shape.heads;
  return role.member == &DraftBlock::wk ? shape.kv_heads : 0;
}

std::vector<int> integers(const gguf::Value& value) {
  std::vector<int> out;
  for (std::uint64_t i = 0; i < value.count; ++i) {
    out.push_back(
        static_cast<int>(std::min<std::int64_t>(std::max<std::int64_t>(value.integer(i), -1), 1 << 24)));
  }
  return out;
}

bool rises_to(const std::vector<int>& sizes, int last) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || sizes[i] % 32 != 0 || (i > 0 && sizes[i] <= sizes[i - 1])) return false;
  }
  return !sizes.empty() && sizes.back() == last;
}

Status read_widths(const gguf::File& file, const ModelConfig& config, DraftShape& shape) {
  const gguf::Value* hidden = file.find(kHidden);
  const gguf::Value* ff = file.find(kFeedForward);
  const gguf::Value* factors = file.find(kFactors);
  if (hidden == nullptr) {
    shape.hidden = {config.hidden};
    shape.feed_forward = {config.feed_forward};
    shape.factors = {1.0};
    return {};
  }
  const bool numbers =
      hidden->is_number() && ff != nullptr && ff->is_number() && factors != nullptr && factors->is_number();
  if (!numbers || hidden->count > 64 || ff->count != hidden->count || factors->count != hidden->count)
    return fail(fmt::format("{}: {}, {} and {} must have as many numbers each", file.path(), kHidden,
                            kFeedForward, kFactors));
  shape.hidden = integers(*hidden);
  shape.feed_forward = integers(*ff);
  for (std::uint64_t i = 0; i < factors->count; ++i) shape.factors.push_back(factors->number(i));
  if (!rises_to(shape.hidden, config.hidden) || !rises_to(shape.feed_forward, config.feed_forward))
    return fail(fmt::format("{}: {} and {} must be multiples of 32 that rise to {} and {}", file.path(),
                            kHidden, kFeedForward, config.hidden, config.feed_forward));
  const std::int64_t layer = file.integer_or(kExitLayer, 0), width = file.integer_or(kExitWidth, 0);
  if (layer < 0 || layer >= config.layers || width < 0 ||
      width >= static_cast<std::int64_t>(shape.hidden.size()))
    return fail(
        fmt::format("{}: {} or {} is not one that the draft has", file.path(), kExitLayer, kExitWidth));
  shape.exit_layer = static_cast<int>(layer);
  shape.exit_width = static_cast<int>(width);
  return {};
}

Result<std::vector<std::int32_t>> read_head_tokens(const gguf::File& file, int vocab) {
  std::vector<std::int32_t> tokens;
  const gguf::Value* value = file.find(kHeadTokensKey);
  if (value == nullptr) {
    tokens.resize(static_cast<std::size_t>(vocab));
    std::iota(tokens.begin(), tokens.end(), 0);
    return tokens;
  }
  if (!value->is_number())
    return fail(fmt::format("{}: {} must be an array of numbers", file.path(), kHeadTokensKey));
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const std::int64_t token = value->integer(i);
    if (token < 0 || token >= vocab || (i > 0 && token <= tokens.back()))
      return fail(
          fmt::format("{}: {} must rise strictly and stay below {}", file.path(), kHeadTokensKey, vocab));
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return tokens;
}

// The row of every token where tokens share the embeddings of the head's: int64 [vocab].
Result<torch::Tensor> read_embedding_rows(const gguf::File& file, int head_rows) {
  const gguf::Value& value = *file.find(kEmbeddingRowsKey);
  if (!value.is_number())
    return fail(fmt::format("{}: {} must be an array of numbers", file.path(), kEmbeddingRowsKey));
  const std::vector<int> rows = integers(value);
  for (const int row : rows) {
    if (row < 0 || row >= head_rows)
      return fail(fmt::format("{}: {} has row {}; a draft to train shares the {} rows of its head's tokens",
                              file.path(), kEmbeddingRowsKey, row, head_rows));
  }
  return torch::tensor(rows, torch::kInt64);
}

Status read_into(const gguf::File& file, const std::string& name, torch::Tensor& values, int turned = 0) {
  COPPICE_TRY(torch::Tensor read, read_tensor(file, name, values.sizes().vec()));
  values.copy_(turned > 0 ? pairs_to_halves(read, turned) : read);
  return {};
}

Status read_gains(const gguf::File& file, const char* role, int block, const DraftShape& shape,
                  std::vector<torch::Tensor>& gains) {
  for (int w = 0; w < shape.widths(); ++w) {
    const std::string name = at_width(role, shape, w);
    COPPICE_TRY_STATUS(read_into(file, block < 0 ? name + ".weight" : block_name(block, name),
                                 gains[static_cast<std::size_t>(w)]));
  }
  return {};
}

}  // namespace

Status add_draft(const SlimDraft& draft, const gguf::File& target, const DraftFileOptions& options,
                 gguf::Writer& writer) {
  const DraftShape& shape = draft.shape();
  COPPICE_TRY(const Format* blocks, format_named("blocks", options.blocks, shape));
  COPPICE_TRY(const Format* head, format_named("head", options.head, shape));
  COPPICE_TRY(const Format* embedding, format_named("embedding", options.embedding, shape));
  add_keys(draft, target, options, writer);
  add_tensor(writer, "token_embd.weight", *embedding,
             draft.shares_embedding() ? draft.used_embedding : draft.embedding());
  for (int i = 0; i < shape.layers; ++i) {
    const DraftBlock& block = draft.blocks[static_cast<std::size_t>(i)];
    add_gains(block.attention_norm, "attn_norm", i, shape, writer);
    add_gains(block.feed_forward_norm, "ffn_norm", i, shape, writer);
    for (const Role& role : kRoles) {
      const torch::Tensor& values = block.*role.member;
      const int turned = turned_heads(role, shape);
      add_tensor(writer, block_name(i, role.name), *blocks,
                 turned > 0 ? halves_to_pairs(values, turned) : values);
    }
  }
  add_gains(draft.output_norm, "output_norm", -1, shape, writer);
  if (shape.exit_layer > 0) add_tensor(writer, "exit_norm.weight", *find_format("F32"), draft.exit_norm);
  add_tensor(writer, "output.weight", *head, draft.head);
  return {};
}

Status write_draft(const SlimDraft& draft, const gguf::File& target, const DraftFileOptions& options,
                   const std::string& path) {
  gguf::Writer writer;
  COPPICE_TRY_STATUS(add_draft(draft, target, options, writer));
  return writer.write(path);
}

Result<std::shared_ptr<SlimDraft>> read_draft(const gguf::File& file) {
  torch::NoGradGuard no_grad;
  COPPICE_TRY(const ModelConfig config, read_config(file));
  if (config.architecture != "llama") return fail(file.path() + ": a draft must be a llama");
  DraftShape shape;
  COPPICE_TRY_STATUS(read_widths(file, config, shape));
  COPPICE_TRY(std::vector<std::int32_t> tokens, read_head_tokens(file, config.vocab));
  shape.layers = config.layers;
  shape.heads = config.heads;
  shape.kv_heads = config.kv_heads;
  shape.head_dim = config.head_dim;
  shape.vocab = config.vocab;
  shape.head_rows = static_cast<int>(tokens.size());
  shape.context_length = config.context_length;
  shape.norm_eps = config.norm_eps;
  shape.rope_base = config.rope_base;
  auto draft = std::make_shared<SlimDraft>(shape, std::move(tokens));
  if (file.find(kEmbeddingRowsKey) != nullptr) {
    COPPICE_TRY(const torch::Tensor rows, read_embedding_rows(file, shape.head_rows));
    draft->share_embedding(rows);
    COPPICE_TRY_STATUS(read_into(file, "token_embd.weight", draft->used_embedding));
  } else {
    COPPICE_TRY(const torch::Tensor embedding,
                read_tensor(file, "token_embd.weight", {config.vocab, config.hidden}));
    draft->set_embedding(embedding);
  }
  for (int i = 0; i < shape.layers; ++i) {
    DraftBlock& block = draft->blocks[static_cast<std::size_t>(i)];
    COPPICE_TRY_STATUS(read_gains(file, "attn_norm", i, shape, block.attention_norm));
    COPPICE_TRY_STATUS(read_gains(file, "ffn_norm", i, shape, block.feed_forward_norm));
    for (const Role& role : kRoles) {
      COPPICE_TRY_STATUS(
          read_into(file, block_name(i, role.name), block.*role.member, turned_heads(role, shape)));
    }
  }
  COPPICE_TRY_STATUS(read_gains(file, "output_norm", -1, shape, draft->output_norm));
  if (shape.exit_layer > 0) COPPICE_TRY_STATUS(read_into(file, "exit_norm.weight", draft->exit_norm));
  const std::string head = file.tensor("output.weight") != nullptr ? "output.weight" : "token_embd.weight";
  COPPICE_TRY_STATUS(read_into(file, head, draft->head));
  return draft;
}

}  // namespace coppice::core::train
