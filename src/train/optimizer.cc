#include "train/optimizer.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace coppice::core::train {
namespace {

constexpr double kFirst = 0.9, kSecond = 0.98, kEpsilon = 1e-8;
constexpr const char* kSteps = "coppice.checkpoint.updates";
constexpr int64_t kGrain = 1 << 14;  // values a thread takes at least

struct Constants {
  float first, second, keep, step, correction, epsilon, average, scale;
};

// One pass over memory does all of it: the parameters are many and the arithmetic is little.
void update_values(int64_t count, float* p, const float* g, float* m, float* v, float* a,
                   const Constants& c) {
  for (int64_t i = 0; i < count; ++i) {
    const float gradient = g[i] * c.scale;
    m[i] = c.first * m[i] + (1 - c.first) * gradient;
    v[i] = c.second * v[i] + (1 - c.second) * gradient * gradient;
    p[i] = p[i] * c.keep - c.step * m[i] / (std::sqrt(v[i]) * c.correction + c.epsilon);
    a[i] += (1 - c.average) * (p[i] - a[i]);
  }
}

Status read_tensor(const gguf::File& file, const std::string& name, torch::Tensor& to) {
  const gguf::Tensor* tensor = file.tensor(name);
  if (tensor == nullptr || tensor->format->name != "F32" || tensor->values() != to.numel())
    return fail(
        fmt::format("{}: tensor \"{}\" with {} F32 values is wanted: the checkpoint is of another run",
                    file.path(), name, to.numel()));
  std::memcpy(to.data_ptr<float>(), tensor->data, tensor->bytes);
  return {};
}

}  // namespace

Optimizer::Optimizer(std::vector<Parameter>& parameters) : parameters_(parameters) {
  for (const Parameter& parameter : parameters) {
    COPPICE_CHECK(parameter.value.is_contiguous() && parameter.value.scalar_type() == torch::kFloat32);
    const torch::Tensor value = parameter.value.detach();
    states_.push_back({torch::zeros_like(value), torch::zeros_like(value), value.clone()});
  }
}

double Optimizer::step(const StepSize& size) {
  torch::NoGradGuard no_gradients;
  double squares = 0;
  for (const Parameter& parameter : parameters_) {
    const torch::Tensor& gradient = parameter.value.grad();
    if (gradient.defined()) squares += std::pow(gradient.norm().item<double>(), 2);
  }
  const double norm = std::sqrt(squares);
  if (std::isfinite(norm)) {
    ++steps_;
    const double scale = size.clip > 0 && norm > size.clip ? size.clip / norm : 1;
    for (std::size_t i = 0; i < states_.size(); ++i) update(i, size, scale);
  }
  for (Parameter& parameter : parameters_) parameter.value.mutable_grad().reset();
  return norm;
}

void Optimizer::update(std::size_t index, const StepSize& size, double scale) {
  const Parameter& parameter = parameters_[index];
  if (!parameter.value.grad().defined()) return;
  const torch::Tensor gradient = parameter.value.grad().contiguous();
  const auto steps = static_cast<double>(steps_);
  const double rate = size.rate * parameter.rate;
  // The average forgets where it began within the first steps.
  const double average = std::min(size.average, (1 + steps) / (10 + steps));
  const Constants constants{static_cast<float>(kFirst),
                            static_cast<float>(kSecond),
                            static_cast<float>(parameter.decay ? 1 - rate * size.decay : 1),
                            static_cast<float>(rate / (1 - std::pow(kFirst, steps))),
                            static_cast<float>(1 / std::sqrt(1 - std::pow(kSecond, steps))),
                            static_cast<float>(kEpsilon),
                            static_cast<float>(average),
                            static_cast<float>(scale)};
  State& state = states_[index];
  auto* p = parameter.value.data_ptr<float>();
  auto* m = state.first.data_ptr<float>();
  auto* v = state.second.data_ptr<float>();
  auto* a = state.average.data_ptr<float>();
  const auto* g = gradient.data_ptr<float>();
  at::parallel_for(0, gradient.numel(), kGrain, [&](int64_t begin, int64_t end) {
    update_values(end - begin, p + begin, g + begin, m + begin, v + begin, a + begin, constants);
  });
}

void Optimizer::swap_average() {
  torch::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const torch::Tensor kept = parameters_[i].value.clone();
    parameters_[i].value.copy_(states_[i].average);
    states_[i].average.copy_(kept);
  }
}

void Optimizer::save(gguf::Writer& writer) const {
  writer.add_u64(kSteps, static_cast<std::uint64_t>(steps_));
  const auto add = [&](const std::string& name, const torch::Tensor& value) {
    const std::span<const float> values(value.data_ptr<float>(), static_cast<std::size_t>(value.numel()));
    writer.add_produced(name, *find_format("F32"), {value.numel()},
                        [values](const Append& append) { return append(std::as_bytes(values)); });
  };
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    add(parameter.name, parameter.value);
    add(parameter.name + ".m", states_[i].first);
    add(parameter.name + ".v", states_[i].second);
    add(parameter.name + ".a", states_[i].average);
  }
}

Status Optimizer::load(const gguf::File& file) {
  torch::NoGradGuard no_gradients;
  COPPICE_TRY(steps_, file.integer(kSteps));
  for (std::size_t i = 0; i < states_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    COPPICE_TRY_STATUS(read_tensor(file, parameter.name, parameter.value));
    COPPICE_TRY_STATUS(read_tensor(file, parameter.name + ".m", states_[i].first));
    COPPICE_TRY_STATUS(read_tensor(file, parameter.name + ".v", states_[i].second));
    COPPICE_TRY_STATUS(read_tensor(file, parameter.name + ".a", states_[i].average));
  }
  return {};
}

}  // namespace coppice::core::train
