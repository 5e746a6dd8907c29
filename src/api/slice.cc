// Cuts a draft out of a model: the first layers, or those that matter most, and a head over the most used
// tokens.
#include <coppice/tools.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "api/impl.h"
#include "base/check.h"
#include "draft/katz.h"
#include "draft/ngram_corpus.h"
#include "gguf/writer.h"
#include "model/architectures.h"

namespace coppice {
namespace {

constexpr std::size_t kMeasuredTokens = 4096;  // of the text, for the importance of layers
constexpr int kRows = 64;
constexpr std::string_view kName = "general.name";

// 1 - cosine of a block's input and output, averaged over tokens: a block that changes little matters little
// (arXiv:2403.03853).
class Importance : public core::LayerTap {
 public:
  Importance(int layers, int hidden) : hidden_(hidden), sums_(static_cast<std::size_t>(layers)) {}

  void matmul(const char*, const core::MatmulTask&, const float*) override {}

  void residual(int layer, const float* x, int rows) override {
    const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(hidden_);
    if (layer > 0) {
      for (int r = 0; r < rows; ++r) {
        const std::size_t at = static_cast<std::size_t>(r) * static_cast<std::size_t>(hidden_);
        sums_[static_cast<std::size_t>(layer) - 1] += 1 - cosine(before_.data() + at, x + at);
      }
    } else {
      rows_ += rows;
    }
    before_.assign(x, x + size);
  }

  std::vector<double> result() const {
    std::vector<double> out = sums_;
    for (double& sum : out) sum /= static_cast<double>(std::max<std::int64_t>(rows_, 1));
    return out;
  }

 private:
  double cosine(const float* a, const float* b) const {
    double ab = 0, aa = 0, bb = 0;
    for (int i = 0; i < hidden_; ++i) {
      const double x = a[i], y = b[i];
      ab += x * y;
      aa += x * x;
      bb += y * y;
    }
    return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 1;
  }

  int hidden_;
  std::int64_t rows_ = 0;
  std::vector<double> sums_;
  std::vector<float> before_;
};

Result<std::vector<double>> measure_importance(const std::string& path,
                                               std::span<const std::vector<Token>> texts,
                                               const std::function<void(double)>& progress) {
  COPPICE_TRY(Model model, Model::load(path));
  core::ContextOptions options;
  options.kv.type = core::CacheType::f16;
  options.kv.positions = std::min(model.info().context_length, 1024);
  options.max_rows = kRows;
  COPPICE_TRY(auto context, core::Context::make(model.impl().model, options, *model.impl().pool));
  COPPICE_TRY(int sequence, context->cache().open());
  COPPICE_TRY_STATUS(context->cache().reserve(sequence, options.kv.positions));
  Importance tap(model.info().layers, model.info().hidden);
  context->set_tap(&tap);
  std::size_t done = 0;
  std::vector<core::Row> rows;
  for (const auto& text : texts) {
    context->cache().rewind(sequence, 0);
    const std::size_t length = std::min(text.size(), static_cast<std::size_t>(options.kv.positions));
    for (std::size_t begin = 0; begin < length && done < kMeasuredTokens; begin += kRows) {
      rows.clear();
      for (std::size_t i = begin; i < std::min(length, begin + kRows); ++i) {
        core::Row row;
        row.sequence = sequence;
        row.token = text[i];
        row.position = static_cast<int>(i);
        row.wants = core::kHidden;
        rows.push_back(row);
      }
      COPPICE_TRY_STATUS(context->forward(rows));
      done += rows.size();
      if (progress) progress(std::min(1.0, static_cast<double>(done) / kMeasuredTokens));
    }
    if (done >= kMeasuredTokens) break;
  }
  return tap.result();
}

// The layers to keep, ascending.
Result<std::vector<int>> choose_layers(const SliceOptions& options, int layers,
                                       std::span<const double> importance) {
  std::vector<int> kept;
  if (!options.keep.empty()) {
    kept = options.keep;
    std::sort(kept.begin(), kept.end());
    if (std::adjacent_find(kept.begin(), kept.end()) != kept.end())
      return fail("a layer to keep is named twice");
    if (kept.front() < 0 || kept.back() >= layers) {
      return fail(fmt::format("layers to keep must lie in 0 to {}", layers - 1));
    }
    return kept;
  }
  kept.resize(static_cast<std::size_t>(layers));
  std::iota(kept.begin(), kept.end(), 0);
  if (options.drop > 0) {
    if (options.drop >= layers) return fail(fmt::format("cannot drop {} of {} layers", options.drop, layers));
    std::stable_sort(kept.begin(), kept.end(), [&](int a, int b) {
      return importance[static_cast<std::size_t>(a)] > importance[static_cast<std::size_t>(b)];
    });
    kept.resize(static_cast<std::size_t>(layers - options.drop));
    std::sort(kept.begin(), kept.end());
  } else if (options.layers > 0) {
    if (options.layers > layers) {
      return fail(fmt::format("the model has {} layers; {} cannot be kept", layers, options.layers));
    }
    kept.resize(static_cast<std::size_t>(options.layers));
  }
  return kept;
}

constexpr std::string_view kNgramEnding = ".ngram";

bool is_ngram(const std::string& path) {
  return path.size() > kNgramEnding.size() &&
         path.compare(path.size() - kNgramEnding.size(), kNgramEnding.size(), kNgramEnding) == 0;
}

// How often each token was used: in texts, or as an n-gram file counted it.
Result<std::vector<std::uint64_t>> count_tokens(const std::string& path, const core::Vocabulary& vocabulary,
                                                std::span<const std::vector<Token>> texts) {
  std::vector<std::uint64_t> used(vocabulary.tokens.size());
  for (const auto& text : texts) {
    for (Token token : text) ++used[static_cast<std::size_t>(token)];
  }
  if (!is_ngram(path)) return used;
  COPPICE_TRY(auto ngram, core::KatzModel::open(path));
  if (ngram->vocabulary_hash() != core::vocabulary_hash(vocabulary.tokens)) {
    return fail(path + ": it was counted with another vocabulary than this model's");
  }
  core::NgramContext contexts[core::kMaxNgramContext + 1];
  ngram->contexts({}, contexts);
  for (std::size_t token = 0; token < used.size(); ++token) {
    used[token] = ngram->count(contexts[0], static_cast<Token>(token));
  }
  return used;
}

// The n most used tokens, ascending; every token that ends a text is among them.
Result<std::vector<Token>> choose_vocabulary(int n, const core::Vocabulary& vocabulary,
                                             std::vector<std::uint64_t> used) {
  if (n < 1 || static_cast<std::size_t>(n) > used.size()) {
    return fail(fmt::format("a head of {} tokens is not possible; 1 to {} are", n, used.size()));
  }
  for (Token token : vocabulary.end_tokens) used[static_cast<std::size_t>(token)] = ~0ull;
  std::vector<Token> tokens(used.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](Token a, Token b) {
    return used[static_cast<std::size_t>(a)] > used[static_cast<std::size_t>(b)];
  });
  tokens.resize(static_cast<std::size_t>(n));
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

// "blk.7.attn_q.weight": 7 and "attn_q.weight"; -1 for tensors outside blocks.
std::pair<int, std::string_view> block_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (name.substr(0, kPrefix.size()) != kPrefix) return {-1, name};
  int block = -1;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size();
  auto [rest, error] = std::from_chars(begin, end, block);
  if (error != std::errc() || rest == end || *rest != '.') return {-1, name};
  return {block, name.substr(static_cast<std::size_t>(rest + 1 - name.data()))};
}

void copy_keys(const core::gguf::File& file, const SliceReport& report, core::gguf::Writer& writer) {
  const std::string block_count = std::string(file.text_or("general.architecture", "")) + ".block_count";
  for (const core::gguf::Key& key : file.keys()) {
    if (key.name == block_count || key.name == core::kHeadTokensKey) continue;
    if (key.name == kName) {
      writer.add_text(std::string(key.name),
                      fmt::format("{} (slice of {} layers)", key.value.strings[0], report.kept.size()));
      continue;
    }
    writer.copy(key);
  }
  writer.add_u32(block_count, static_cast<std::uint32_t>(report.kept.size()));
}

Status copy_tensors(const core::gguf::File& file, const SliceReport& report, std::span<const Token> head,
                    core::gguf::Writer& writer) {
  const bool tied = file.tensor("output.weight") == nullptr;
  for (const core::gguf::Tensor& tensor : file.tensors()) {
    auto [block, rest] = block_of(tensor.name);
    if (block < 0) {
      if (head.empty() || tensor.name != "output.weight") writer.copy(tensor);
      continue;
    }
    auto kept = std::find(report.kept.begin(), report.kept.end(), block);
    if (kept == report.kept.end()) continue;
    const auto number = kept - report.kept.begin();
    std::vector<std::int64_t> shape(tensor.shape, tensor.shape + tensor.rank);
    writer.add_tensor(fmt::format("blk.{}.{}", number, rest), *tensor.format, std::move(shape),
                      {tensor.data, tensor.data + tensor.bytes});
  }
  if (head.empty()) return {};
  const core::gguf::Tensor* source = file.tensor(tied ? "token_embd.weight" : "output.weight");
  if (source == nullptr) return fail(file.path() + ": there is no token_embd.weight to cut a head from");
  const std::size_t row = core::row_bytes(*source->format, source->shape[0]);
  std::vector<std::byte> rows;
  rows.reserve(row * head.size());
  for (Token token : head) {
    const std::byte* at = source->data + row * static_cast<std::size_t>(token);
    rows.insert(rows.end(), at, at + row);
  }
  writer.add_tensor("output.weight", *source->format,
                    {source->shape[0], static_cast<std::int64_t>(head.size())}, std::move(rows));
  writer.add_i32s(core::kHeadTokensKey, {head.begin(), head.end()});
  return {};
}

}  // namespace

Result<SliceReport> slice(const SliceOptions& options) {
  if ((options.layers > 0) + !options.keep.empty() + (options.drop > 0) > 1) {
    return fail("say one of: the first layers, the layers to keep, how many to drop");
  }
  if ((options.drop > 0 || options.vocabulary > 0) && options.text.empty()) {
    return fail("dropping layers by importance and trimming the vocabulary need a text to measure on");
  }
  COPPICE_TRY(auto file, core::gguf::File::open(options.input));
  if (file->find(core::kHeadTokensKey) != nullptr && options.vocabulary > 0) {
    return fail(options.input + ": its head is trimmed already; cut the vocabulary from the whole model");
  }
  COPPICE_TRY(Tokenizer tokenizer, make_tokenizer(*file));
  COPPICE_TRY(const core::ModelConfig config, core::read_config(*file));
  for (const auto& [some, what] :
       {std::pair(&config.windowed, "a sliding window"), std::pair(&config.unturned, "no RoPE")})
    if (std::ranges::count(*some, 1) % config.layers != 0)
      return fail(
          fmt::format("{}: some of its layers have {}, by their numbers; without some of them the "
                      "others would not be what they were",
                      options.input, what));
  if (file->find(kName) != nullptr) COPPICE_TRY_STATUS(file->text(kName));  // it is changed below
  std::vector<std::vector<Token>> texts;
  if (options.drop > 0 && is_ngram(options.text)) {
    return fail(options.text +
                ": layers are measured on a text; an n-gram file only says which tokens are used");
  }
  if (!options.text.empty() && !is_ngram(options.text)) {
    COPPICE_TRY_STATUS(core::read_texts(*tokenizer.impl().tokenizer, options.text,
                                        [&](const core::CorpusText& text) { texts.push_back(text.tokens); }));
  }
  SliceReport report;
  if (options.drop > 0) {
    COPPICE_TRY(report.importance, measure_importance(options.input, texts, options.progress));
  }
  COPPICE_TRY(report.kept, choose_layers(options, config.layers, report.importance));
  std::vector<Token> head;
  if (options.vocabulary > 0) {
    const core::Vocabulary& vocabulary = tokenizer.impl().tokenizer->vocabulary();
    COPPICE_TRY(auto used, count_tokens(options.text, vocabulary, texts));
    COPPICE_TRY(head, choose_vocabulary(options.vocabulary, vocabulary, std::move(used)));
  }
  report.vocabulary = head.empty() ? tokenizer.size() : static_cast<int>(head.size());
  core::gguf::Writer writer;
  copy_keys(*file, report, writer);
  if (head.empty()) {
    if (const auto* map = file->find(core::kHeadTokensKey))
      writer.copy(core::gguf::Key{core::kHeadTokensKey, *map});
  }
  COPPICE_TRY_STATUS(copy_tensors(*file, report, head, writer));
  COPPICE_TRY_STATUS(writer.write(options.output));
  COPPICE_TRY(auto written, core::gguf::File::open(options.output));
  report.bytes = written->bytes();
  return report;
}

}  // namespace coppice
