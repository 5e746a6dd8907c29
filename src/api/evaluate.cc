// Passes over a given text: perplexity, logits, layers, blocks.
#include <coppice/tools.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "api/impl.h"
#include "api/npy.h"
#include "base/check.h"
#include "draft/self_drafter.h"
#include "model/blocks.h"

namespace coppice {
namespace {

constexpr int kChunk = 64;  // rows a pass; law 2: it changes nothing

// A context with one sequence for `positions` tokens whose rows may all want logits.
struct Reader {
  std::unique_ptr<core::Context> context;
  int sequence = 0;
  std::vector<core::Row> rows;

  static Result<Reader> make(const Model& model, int positions, core::CacheType cache) {
    const core::ModelConfig& config = model.impl().model->config();
    if (config.positions == core::Positions::learned && positions > config.context_length)
      return fail(fmt::format(
          "{}: this model has learned positions up to {}; a text or chunk of {} tokens is too long for it",
          model.info().path, config.context_length, positions));
    core::ContextOptions options;
    options.kv = {cache, 1, positions, 1};
    options.max_rows = options.max_logits = kChunk;
    Reader reader;
    COPPICE_TRY(reader.context, core::Context::make(model.impl().model, options, *model.impl().pool));
    COPPICE_TRY(reader.sequence, reader.context->cache().open());
    COPPICE_TRY_STATUS(reader.context->cache().reserve(reader.sequence, positions));
    return reader;
  }

  Status read(std::span<const Token> tokens, unsigned wants) {
    rows.clear();
    const int begin = context->cache().length(sequence);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      core::Row row;
      row.sequence = sequence;
      row.token = tokens[i];
      row.position = begin + static_cast<int>(i);
      row.wants = wants;
      rows.push_back(row);
    }
    return context->forward(rows);
  }
};

// -log p(token), natural, in double.
double surprise(std::span<const float> logits, Token token) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return std::log(sum) + most - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

Result<std::string> folder_for(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(fmt::format("cannot make the folder {}: {}", folder, error.message()));
  return folder;
}

// Writes what every matmul of a pass saw and said.
class LayerWriter : public core::LayerTap {
 public:
  explicit LayerWriter(std::string folder) : folder_(std::move(folder)) {}

  void matmul(const char* tensor, const core::MatmulTask& task, const float* x) override {
    if (!status_) return;
    const std::string name = fmt::format("{}/{:03}_{}", folder_, number_++, tensor);
    const auto rows = static_cast<std::size_t>(task.rows);
    const auto inputs = static_cast<std::size_t>(task.weights->inputs);
    const auto outputs = static_cast<std::size_t>(task.weights->outputs);
    write(name + ".in.npy", "<f4", rows, inputs, x, inputs);
    if (task.weights->quantised()) {
      const std::size_t groups = inputs / core::kBlockInputs;
      write(name + ".codes.npy", "|i1", rows, inputs, task.q.codes, inputs);
      write(name + ".scales.npy", "<f4", rows, groups, task.q.scales, groups);
    }
    write(name + ".out.npy", "<f4", rows, outputs, task.y, task.y_stride);
  }

  Status status() const { return status_; }

 private:
  template <class Number>
  void write(const std::string& path, std::string_view descr, std::size_t rows, std::size_t columns,
             const Number* values, std::size_t stride) {
    if (!status_) return;
    status_ = write_npy(path, descr, rows, columns, [&](const core::Append& append) -> Status {
      for (std::size_t r = 0; r < rows; ++r) {
        COPPICE_TRY_STATUS(append(std::as_bytes(std::span(values + r * stride, columns))));
      }
      return {};
    });
  }

  std::string folder_;
  int number_ = 0;
  Status status_;
};

}  // namespace

Status check_tokens(const Model& model, std::span<const Token> tokens) {
  if (tokens.empty()) return fail("the text is empty; at least one token is needed");
  for (Token token : tokens) {
    if (token < 0 || token >= model.info().vocab) {
      return fail(fmt::format("token id {} is not in the vocabulary of {}", token, model.info().vocab));
    }
  }
  return {};
}

Result<core::CacheType> cache_type(const std::string& name) {
  if (name == "f32") return core::CacheType::f32;
  if (name == "f16") return core::CacheType::f16;
  if (name == "q8_0") return core::CacheType::q8_0;
  return fail(fmt::format("there is no cache type \"{}\"; there is f32, f16 and q8_0", name));
}

Result<Perplexity> perplexity(const Model& model, std::span<const Token> tokens,
                              const PerplexityOptions& options) {
  COPPICE_TRY_STATUS(check_tokens(model, tokens));
  if (options.context < 4)
    return fail(fmt::format("a chunk of {} tokens is too short; at least 4", options.context));
  const auto context = static_cast<std::size_t>(options.context);
  int chunks = static_cast<int>(tokens.size() / context);
  if (chunks == 0) {
    return fail(fmt::format("the text has {} tokens; one chunk needs {}", tokens.size(), options.context));
  }
  if (options.chunks > 0) chunks = std::min(chunks, options.chunks);
  COPPICE_TRY(Reader reader, Reader::make(model, options.context, core::CacheType::f16));
  const auto& vocabulary = model.impl().tokenizer.impl().tokenizer->vocabulary();
  const std::size_t first = context / 2;
  double sum = 0, squares = 0;
  Perplexity result;
  std::vector<Token> chunk;
  for (int c = 0; c < chunks; ++c) {
    const auto text = tokens.subspan(static_cast<std::size_t>(c) * context, context);
    chunk.assign(text.begin(), text.end());
    if (vocabulary.add_bos && vocabulary.bos != kNoToken) chunk[0] = vocabulary.bos;
    reader.context->cache().rewind(reader.sequence, 0);
    for (std::size_t begin = 0; begin < context; begin += kChunk) {
      const std::size_t count = std::min<std::size_t>(kChunk, context - begin);
      COPPICE_TRY_STATUS(reader.read(std::span<const Token>(chunk).subspan(begin, count), core::kLogits));
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t position = begin + i;
        if (position < first || position + 1 >= context) continue;
        const double nll = surprise(reader.context->logits(static_cast<int>(i)), chunk[position + 1]);
        sum += nll;
        squares += nll * nll;
        ++result.tokens;
      }
    }
    result.chunks = c + 1;
    const auto n = static_cast<double>(result.tokens);
    result.perplexity = std::exp(sum / n);
    const double variance = squares / n - (sum / n) * (sum / n);
    result.standard_error = n > 1 ? result.perplexity * std::sqrt(std::max(0.0, variance) / (n - 1)) : 0;
    if (options.progress) options.progress(c + 1, chunks, result.perplexity);
  }
  return result;
}

namespace {

// One row of logits for each token, in order.
Status each_logits(const Model& model, std::span<const Token> tokens, const std::string& cache,
                   const std::function<Status(std::span<const float>)>& row) {
  COPPICE_TRY_STATUS(check_tokens(model, tokens));
  COPPICE_TRY(core::CacheType type, cache_type(cache));
  COPPICE_TRY(Reader reader, Reader::make(model, static_cast<int>(tokens.size()), type));
  for (std::size_t begin = 0; begin < tokens.size(); begin += kChunk) {
    const std::size_t count = std::min<std::size_t>(kChunk, tokens.size() - begin);
    COPPICE_TRY_STATUS(reader.read(tokens.subspan(begin, count), core::kLogits));
    for (std::size_t i = 0; i < count; ++i) {
      COPPICE_TRY_STATUS(row(reader.context->logits(static_cast<int>(i))));
    }
  }
  return {};
}

}  // namespace

Status read_logits(const Model& model, std::span<const Token> tokens, std::span<float> out,
                   const std::string& cache) {
  const auto vocab = static_cast<std::size_t>(model.info().vocab);
  if (out.size() != tokens.size() * vocab)
    return fail(fmt::format("logits of {} tokens are {} numbers; there is room for {}", tokens.size(),
                            tokens.size() * vocab, out.size()));
  return each_logits(model, tokens, cache, [&](std::span<const float> logits) -> Status {
    std::copy(logits.begin(), logits.end(), out.begin());
    out = out.subspan(vocab);
    return {};
  });
}

Status write_logits(const Model& model, std::span<const Token> tokens, const std::string& path,
                    const std::string& cache) {
  return write_npy(path, "<f4", tokens.size(), static_cast<std::size_t>(model.info().vocab),
                   [&](const core::Append& append) {
                     return each_logits(model, tokens, cache, [&](std::span<const float> logits) {
                       return append(std::as_bytes(logits));
                     });
                   });
}

Status write_layers(const Model& model, std::span<const Token> tokens, const std::string& folder) {
  COPPICE_TRY_STATUS(check_tokens(model, tokens));
  if (tokens.size() > kChunk) {
    return fail(
        fmt::format("layers of {} tokens are too many for one pass; at most {}", tokens.size(), kChunk));
  }
  COPPICE_TRY(Reader reader, Reader::make(model, static_cast<int>(tokens.size()), core::CacheType::f32));
  COPPICE_TRY(auto where, folder_for(folder));
  LayerWriter writer(where);
  reader.context->set_tap(&writer);
  COPPICE_TRY_STATUS(reader.read(tokens, core::kLogits));
  return writer.status();
}

Result<BlockReport> measure_blocks(const Model& model, std::span<const Token> tokens,
                                   const BlockOptions& options) {
  const std::vector<Token> own = model.tokenizer().encode(core::calibration_text());
  if (tokens.empty()) tokens = own;
  COPPICE_TRY_STATUS(check_tokens(model, tokens));
  const auto most = static_cast<std::size_t>(model.info().context_length);
  tokens = tokens.first(std::min(tokens.size(), most));
  const Model::Impl& impl = model.impl();
  BlockReport report;
  COPPICE_TRY(report.influence, core::block_influence(impl.model, tokens, *impl.pool));
  COPPICE_TRY(const auto order,
              core::removal_order(impl.model, tokens, options.removals, *impl.pool, options.progress));
  for (const core::Removal& removal : order) report.removals.push_back({removal.block, removal.agreement});
  return report;
}

}  // namespace coppice
