// Writes a model again in another format, piece by piece: rows are unpacked and quantised on all threads
// while the file is written.
#include <coppice/quantize.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "api/importance.h"
#include "api/quantise_plan.h"
#include "base/check.h"
#include "base/os.h"
#include "base/thread_pool.h"
#include "gguf/writer.h"

namespace coppice {
namespace {

using core::Format;
using core::gguf::Tensor;

constexpr std::int64_t kValuesAtOnce = 1 << 18;    // of one thread
constexpr std::uint32_t kQuantizationVersion = 2;  // of the block formats' layouts

class Quantiser {
 public:
  Quantiser(const core::gguf::File& file, const QuantizeOptions& options, QuantizePlan plan)
      : file_(file),
        options_(options),
        plan_(std::move(plan)),
        pool_(options.threads > 0 ? options.threads : core::usable_cores()) {}

  Result<QuantizeReport> run();

 private:
  void add_keys();
  Status add(const Tensor& tensor);
  Result<const float*> importance_of(const Tensor& tensor, const Format& to);
  // Rows [begin, end) into `out`. `values`: room for a row.
  std::int64_t convert(const Tensor& tensor, const Format& to, const float* importance, std::int64_t begin,
                       std::int64_t end, std::byte* out, std::vector<float>& values) const;
  Status produce(const Tensor& tensor, const Format& to, const float* importance, const core::Append& append);
  Status count(std::int64_t values);

  const core::gguf::File& file_;
  const QuantizeOptions& options_;
  QuantizePlan plan_;
  core::ThreadPool pool_;
  std::optional<ImportanceMatrix> importance_;
  core::gguf::Writer writer_;
  QuantizeReport report_;
  std::int64_t values_ = 0, written_ = 0;
};

void Quantiser::add_keys() {
  for (const core::gguf::Key& key : file_.keys()) writer_.copy(key);
  writer_.add_u32("general.quantization_version", kQuantizationVersion);
  writer_.add_u32("general.file_type", plan_.file_type());
  if (!importance_) return;
  writer_.add_text("quantize.imatrix.file", std::filesystem::path(options_.importance).filename().string());
  writer_.add_i32("quantize.imatrix.entries_count", static_cast<std::int32_t>(importance_->entries()));
}

// [matrices * inputs], or null where nothing is known or the format asks for none.
Result<const float*> Quantiser::importance_of(const Tensor& tensor, const Format& to) {
  if (!importance_ || to.block_values == 1) return nullptr;
  const std::vector<float>* known = importance_->find(tensor.name);
  if (known == nullptr) return nullptr;
  const std::int64_t matrices = tensor.shape[2] * tensor.shape[3];
  if (static_cast<std::int64_t>(known->size()) != tensor.shape[0] * matrices)
    return fail(
        fmt::format("{}: {} has {} importances, but the model's has {} matrices of {} inputs: it was "
                    "measured on another model",
                    options_.importance, std::string(tensor.name), known->size(), matrices, tensor.shape[0]));
  return known->data();
}

// The first row whose values are not finite, or do not fit the format; -1 if all are well.
std::int64_t Quantiser::convert(const Tensor& tensor, const Format& to, const float* importance,
                                std::int64_t begin, std::int64_t end, std::byte* out,
                                std::vector<float>& values) const {
  const std::int64_t inputs = tensor.shape[0], outputs = tensor.shape[1];
  const std::size_t from_row = core::row_bytes(*tensor.format, inputs), to_row = core::row_bytes(to, inputs);
  values.resize(static_cast<std::size_t>(inputs));
  for (std::int64_t row = begin; row < end; ++row, out += to_row) {
    const std::byte* source = tensor.data + from_row * static_cast<std::size_t>(row);
    if (tensor.format->find_nonfinite(source, inputs) >= 0) return row;
    tensor.format->unpack(source, values.data(), inputs);
    // Rows of one matrix follow each other; each matrix has importances of its own.
    to.quantize(values.data(), importance == nullptr ? nullptr : importance + row / outputs * inputs, out,
                inputs);
    if (to.find_nonfinite(out, inputs) >= 0) return row;
  }
  return -1;
}

Status Quantiser::count(std::int64_t values) {
  written_ += values;
  if (!options_.progress) return {};
  if (!options_.progress(static_cast<double>(written_) / static_cast<double>(values_)))
    return fail("stopped");
  return {};
}

Status Quantiser::produce(const Tensor& tensor, const Format& to, const float* importance,
                          const core::Append& append) {
  const std::int64_t inputs = tensor.shape[0], rows = tensor.values() / inputs;
  const int threads = pool_.size();
  const std::int64_t at_once = std::min(std::max<std::int64_t>(1, kValuesAtOnce / inputs) * threads, rows);
  const std::size_t from_row = core::row_bytes(*tensor.format, inputs), to_row = core::row_bytes(to, inputs);
  std::vector<std::byte> bytes(to_row * static_cast<std::size_t>(at_once));
  std::vector<std::vector<float>> values(static_cast<std::size_t>(threads));
  std::vector<std::int64_t> bad(static_cast<std::size_t>(threads));
  for (std::int64_t first = 0; first < rows; first += at_once) {
    const int now = static_cast<int>(std::min(at_once, rows - first));
    pool_.run([&](int thread) {
      const core::Span1 part = core::share(now, thread, threads);
      const auto own = static_cast<std::size_t>(thread);
      bad[own] = convert(tensor, to, importance, first + part.begin, first + part.end,
                         bytes.data() + to_row * static_cast<std::size_t>(part.begin), values[own]);
    });
    for (const std::int64_t row : bad)
      if (row >= 0)
        return fail(
            fmt::format("{}: tensor {} has a value in row {} that is not finite, or that {} cannot hold",
                        file_.path(), std::string(tensor.name), row, to.name));
    COPPICE_TRY_STATUS(append(std::span(bytes).first(to_row * static_cast<std::size_t>(now))));
    file_.release(
        {tensor.data + from_row * static_cast<std::size_t>(first), from_row * static_cast<std::size_t>(now)});
    COPPICE_TRY_STATUS(count(inputs * now));
  }
  return {};
}

Status Quantiser::add(const Tensor& tensor) {
  const QuantizePlan::Choice choice = plan_.choose(tensor);
  const Format& to = *choice.format;
  QuantizedTensor& said = report_.tensors.emplace_back();
  said.name = tensor.name;
  said.from = tensor.format->name;
  said.to = to.name;
  said.why = choice.why;
  said.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  said.bytes_before = tensor.bytes;
  said.bytes_after = core::row_bytes(to, tensor.values());
  values_ += tensor.values();
  const std::vector<std::int64_t> shape = said.shape;
  if (tensor.format == &to) {
    writer_.add_produced(said.name, to, shape, [this, &tensor](const core::Append& append) -> Status {
      COPPICE_TRY_STATUS(append({tensor.data, tensor.bytes}));
      file_.release({tensor.data, tensor.bytes});
      return count(tensor.values());
    });
    return {};
  }
  COPPICE_TRY(const float* importance, importance_of(tensor, to));
  said.importance = importance != nullptr;
  writer_.add_produced(said.name, to, shape, [this, &tensor, &to, importance](const core::Append& append) {
    return produce(tensor, to, importance, append);
  });
  return {};
}

Result<QuantizeReport> Quantiser::run() {
  if (!options_.importance.empty()) {
    COPPICE_TRY(importance_, ImportanceMatrix::read(options_.importance));
  }
  add_keys();
  report_.tensors.reserve(file_.tensors().size());
  for (const Tensor& tensor : file_.tensors()) COPPICE_TRY_STATUS(add(tensor));
  COPPICE_TRY_STATUS(writer_.write(options_.output));
  report_.bytes_before = file_.bytes();
  report_.bytes_after = writer_.bytes();
  return std::move(report_);
}

}  // namespace

Result<QuantizeReport> quantize(const QuantizeOptions& options) {
  if (options.threads < 0 || options.threads > 1024)
    return fail(fmt::format("threads = {}: 0 (all there are) to 1024 are possible", options.threads));
  COPPICE_TRY(const auto file, core::gguf::File::open(options.input));
  for (const core::gguf::Part& part : file->parts()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(part.path, options.output, ignored))
      return fail(fmt::format("the output would replace {}, which is read; name another output", part.path));
  }
  COPPICE_TRY(QuantizePlan plan, QuantizePlan::make(*file, options));
  return Quantiser(*file, options, std::move(plan)).run();
}

std::vector<QuantizeFormat> quantize_formats() {
  std::vector<QuantizeFormat> rows;
  const auto bits = [](std::string_view name) {
    const Format* format = core::find_format(name);
    return 8.0 * format->block_bytes / format->block_values;
  };
  for (const Format& format : core::formats())
    rows.push_back({std::string(format.name), bits(format.name), ""});
  for (const QuantizeMix& mix : quantize_mixes()) {
    constexpr std::string_view kWhere[] = {
        "", "in the first eighth of the blocks",
        "in the first and last eighth of the blocks and every third between", "everywhere"};
    std::string summary = fmt::format("{}; output {}", mix.most, mix.head);
    if (mix.attention_output != mix.most) summary += fmt::format("; attn_output {}", mix.attention_output);
    if (mix.value_and_down != mix.most && mix.where != BetterBlocks::all)
      summary += fmt::format("; attn_v, ffn_down {}", mix.value_and_down);
    if (mix.where != BetterBlocks::none)
      summary += fmt::format("; attn_v, ffn_down {} {}", mix.better, kWhere[static_cast<int>(mix.where)]);
    rows.push_back({std::string(mix.name), bits(mix.most), std::move(summary)});
  }
  return rows;
}

}  // namespace coppice
