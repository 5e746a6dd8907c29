// The gate's file: a small GGUF (docs/file-formats.md, "Gates").
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "gguf/writer.h"
#include "policy/gate.h"

namespace coppice::core {
namespace {

constexpr std::string_view kArchitecture = "coppice-gate";
constexpr std::string_view kPrefix = "coppice.gate.";
constexpr int kMostHidden = 1 << 20, kMostLayer = 1 << 16;

std::string key(std::string_view name) { return std::string(kPrefix) + std::string(name); }

// The texts of a gate's origin by key.
struct OriginKey {
  const char* name;
  std::string GateOrigin::*text;
};
constexpr OriginKey kOrigin[] = {
    {"target", &GateOrigin::target}, {"target_hash", &GateOrigin::target_hash},
    {"draft", &GateOrigin::draft},   {"draft_hash", &GateOrigin::draft_hash},
    {"data", &GateOrigin::data},     {"command", &GateOrigin::command},
};

class Reader {
 public:
  explicit Reader(const gguf::File& file) : file_(file) {}

  Result<Gate> read() {
    if (file_.text_or("general.architecture", "") != kArchitecture)
      return fail(
          fmt::format("{}: is no gate: general.architecture is not \"{}\"; `coppice train gate` "
                      "writes one",
                      file_.path(), kArchitecture));
    COPPICE_TRY(w_.hidden, number("hidden", 1, kMostHidden));
    COPPICE_TRY(w_.layer, number("layer", 0, kMostLayer));
    COPPICE_TRY(w_.units, number("units", 1, kMostGateUnits));
    COPPICE_TRY(w_.mean, values("gate.mean", {w_.inputs()}));
    COPPICE_TRY(w_.scale, values("gate.scale", {w_.inputs()}));
    COPPICE_TRY(const std::vector<float> in, values("gate.in.weight", {w_.inputs(), w_.units}));
    COPPICE_TRY(w_.in_bias, values("gate.in.bias", {w_.units}));
    COPPICE_TRY(w_.out, values("gate.out.weight", {w_.units}));
    COPPICE_TRY(const std::vector<float> out_bias, values("gate.out.bias", {1}));
    w_.out_bias = out_bias[0];
    w_.in.resize(in.size());
    const auto inputs = static_cast<std::size_t>(w_.inputs()), units = static_cast<std::size_t>(w_.units);
    for (std::size_t u = 0; u < units; ++u)
      for (std::size_t i = 0; i < inputs; ++i) w_.in[i * units + u] = in[u * inputs + i];
    GateOrigin origin;
    for (const OriginKey& text : kOrigin) origin.*text.text = file_.text_or(key(text.name), "");
    return Gate(std::move(w_), std::move(origin));
  }

 private:
  Result<int> number(std::string_view name, int least, int most) const {
    COPPICE_TRY(const std::int64_t value, file_.integer(key(name)));
    if (value < least || value > most)
      return fail(fmt::format("{}: {} is {}, but must be from {} to {}", file_.path(), key(name), value,
                              least, most));
    return static_cast<int>(value);
  }

  Result<std::vector<float>> values(std::string_view name, std::vector<std::int64_t> shape) const {
    const gguf::Tensor* tensor = file_.tensor(name);
    if (tensor == nullptr)
      return fail(fmt::format("{}: tensor {} is missing; a gate has it", file_.path(), name));
    shape.resize(4, 1);
    if (!std::equal(shape.begin(), shape.end(), tensor->shape))
      return fail(fmt::format(
          "{}: tensor {} has the shape {} x {}, but must have {} x {}", file_.path(), name, tensor->shape[0],
          tensor->values() / std::max<std::int64_t>(tensor->shape[0], 1), shape[0], shape[1]));
    if (!tensor->format->weights || tensor->format->block_values != 1)
      return fail(fmt::format("{}: tensor {} has the type {}, but must be F32, F16 or BF16", file_.path(),
                              name, tensor->format->name));
    std::vector<float> out(static_cast<std::size_t>(tensor->values()));
    tensor->format->unpack(tensor->data, out.data(), tensor->values());
    for (std::size_t i = 0; i < out.size(); ++i)
      if (!std::isfinite(out[i]))
        return fail(
            fmt::format("{}: tensor {} has a value that is not finite at index {}", file_.path(), name, i));
    return out;
  }

  const gguf::File& file_;
  GateWeights w_;
};

gguf::Writer writer_of(const Gate& gate) {
  const GateWeights& w = gate.weights();
  gguf::Writer writer;
  writer.add_text("general.architecture", std::string(kArchitecture));
  writer.add_u32(key("hidden"), static_cast<std::uint32_t>(w.hidden));
  writer.add_u32(key("layer"), static_cast<std::uint32_t>(w.layer));
  writer.add_u32(key("units"), static_cast<std::uint32_t>(w.units));
  for (const OriginKey& text : kOrigin)
    if (const std::string& value = gate.origin().*text.text; !value.empty())
      writer.add_text(key(text.name), value);
  const auto inputs = static_cast<std::size_t>(w.inputs()), units = static_cast<std::size_t>(w.units);
  std::vector<float> in(w.in.size());
  for (std::size_t u = 0; u < units; ++u)
    for (std::size_t i = 0; i < inputs; ++i) in[u * inputs + i] = w.in[i * units + u];
  const Format& f32 = *find_format("F32");
  const Format& f16 = *find_format("F16");
  writer.add_values("gate.mean", f32, {w.inputs()}, w.mean);
  writer.add_values("gate.scale", f32, {w.inputs()}, w.scale);
  writer.add_values("gate.in.weight", f16, {w.inputs(), w.units}, in);
  writer.add_values("gate.in.bias", f32, {w.units}, w.in_bias);
  writer.add_values("gate.out.weight", f32, {w.units}, w.out);
  writer.add_values("gate.out.bias", f32, {1}, {&w.out_bias, 1});
  return writer;
}

}  // namespace

Result<Gate> Gate::read(const std::string& path) {
  COPPICE_TRY(const auto file, gguf::File::open(path));
  return parse(*file);
}

Result<Gate> Gate::parse(const gguf::File& file) { return Reader(file).read(); }

Status write_gate(const std::string& path, const Gate& gate) { return writer_of(gate).write(path); }

std::vector<std::byte> gate_bytes(const Gate& gate) { return writer_of(gate).to_bytes(); }

}  // namespace coppice::core
