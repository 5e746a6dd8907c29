// Measures an importance matrix: a text is read in chunks, and a tap adds up the squares of what each matrix
// is multiplied by.
#include <coppice/quantize.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "api/impl.h"
#include "base/check.h"
#include "gguf/writer.h"

namespace coppice {
namespace {

constexpr int kRows = 64;  // a pass

// Which matrix of a tensor a product's name means: of experts "NAME.weight.3" is the one of number 3.
struct MatrixName {
  std::string tensor;
  std::size_t number = 0;
};
MatrixName matrix_name(const std::string& name) {
  constexpr std::string_view kWeight = ".weight.";
  const std::size_t at = name.rfind(kWeight);
  if (at == std::string::npos) return {name};
  const std::size_t digits = at + kWeight.size();
  std::size_t number = 0;
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + digits, end, number);
  if (error != std::errc() || stopped != end) return {name};
  return {name.substr(0, digits - 1), number};
}

class SquareSums : public core::LayerTap {
 public:
  struct Entry {
    std::vector<double> sums;  // [inputs]
    std::int64_t rows = 0;
  };

  void matmul(const char* name, const core::MatmulTask& task, const float* x) override {
    const MatrixName matrix = matrix_name(name);
    std::vector<Entry>& matrices = entries_[matrix.tensor];
    if (matrices.size() <= matrix.number) matrices.resize(matrix.number + 1);
    Entry& entry = matrices[matrix.number];
    const auto inputs = static_cast<std::size_t>(task.weights->inputs);
    entry.sums.resize(inputs);
    entry.rows += task.rows;
    for (int r = 0; r < task.rows; ++r, x += inputs)
      for (std::size_t i = 0; i < inputs; ++i) {
        const double value = x[i];
        entry.sums[i] += value * value;
      }
  }

  // By tensor, its matrices. Of experts that no token chose there may be none.
  const std::map<std::string, std::vector<Entry>>& entries() const { return entries_; }

 private:
  std::map<std::string, std::vector<Entry>> entries_;
};

Status write(const SquareSums& tap, const core::gguf::File& model, const ImportanceOptions& options,
             int chunks) {
  const core::Format& f32 = *core::find_format("F32");
  core::gguf::Writer writer;
  writer.add_text("general.type", "imatrix");
  writer.add_texts("imatrix.datasets", {options.source});
  writer.add_u32("imatrix.chunk_count", static_cast<std::uint32_t>(chunks));
  writer.add_u32("imatrix.chunk_size", static_cast<std::uint32_t>(options.context));
  for (const auto& [name, matrices] : tap.entries()) {
    const core::gguf::Tensor* tensor = model.tensor(name);
    if (tensor == nullptr) continue;
    const std::int64_t inputs = tensor->shape[0], count = tensor->shape[2] * tensor->shape[3];
    std::vector<float> sums(static_cast<std::size_t>(inputs * count)), rows(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < std::min(matrices.size(), rows.size()); ++i) {
      rows[i] = static_cast<float>(matrices[i].rows);
      for (std::size_t k = 0; k < std::min(matrices[i].sums.size(), static_cast<std::size_t>(inputs)); ++k)
        sums[i * static_cast<std::size_t>(inputs) + k] = static_cast<float>(matrices[i].sums[k]);
    }
    writer.add_values(name + ".in_sum2", f32, {inputs, count}, sums);
    writer.add_values(name + ".counts", f32, {1, count}, rows);
  }
  return writer.write(options.output);
}

}  // namespace

Result<ImportanceReport> measure_importance(const Model& model, std::span<const Token> tokens,
                                            const ImportanceOptions& options) {
  COPPICE_TRY_STATUS(check_tokens(model, tokens));
  if (options.context < 1 || options.context > model.info().context_length)
    return fail(fmt::format("context = {}: it must be from 1 to the model's {}", options.context,
                            model.info().context_length));
  if (options.chunks < 0) return fail(fmt::format("chunks = {}: it must be at least 0", options.chunks));
  const auto length = static_cast<std::size_t>(options.context);
  std::size_t chunks = (tokens.size() + length - 1) / length;
  if (options.chunks > 0) chunks = std::min(chunks, static_cast<std::size_t>(options.chunks));
  tokens = tokens.first(std::min(tokens.size(), chunks * length));

  core::ContextOptions wanted;
  wanted.kv = {core::CacheType::f16, 1, options.context, 1};
  wanted.max_rows = wanted.max_logits = kRows;
  COPPICE_TRY(auto context, core::Context::make(model.impl().model, wanted, *model.impl().pool));
  COPPICE_TRY(const int sequence, context->cache().open());
  COPPICE_TRY_STATUS(context->cache().reserve(sequence, options.context));
  SquareSums tap;
  context->set_tap(&tap);
  std::vector<core::Row> rows;
  for (std::size_t begin = 0; begin < tokens.size();) {
    const std::size_t place = begin % length;  // in the chunk
    if (place == 0) context->cache().rewind(sequence, 0);
    const std::size_t count = std::min({std::size_t{kRows}, length - place, tokens.size() - begin});
    rows.clear();
    for (std::size_t i = 0; i < count; ++i) {
      core::Row row;
      row.sequence = sequence;
      row.token = tokens[begin + i];
      row.position = static_cast<int>(place + i);
      row.wants = core::kLogits;
      rows.push_back(row);
    }
    COPPICE_TRY_STATUS(context->forward(rows));
    begin += count;
    if (options.progress &&
        !options.progress(static_cast<double>(begin) / static_cast<double>(tokens.size())))
      return fail("stopped");
  }
  COPPICE_TRY_STATUS(write(tap, *model.impl().file, options, static_cast<int>(chunks)));
  return ImportanceReport{static_cast<int>(tap.entries().size()), static_cast<int>(chunks),
                          static_cast<std::int64_t>(tokens.size())};
}

}  // namespace coppice
