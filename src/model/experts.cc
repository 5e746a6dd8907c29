// The feed-forward part of a layer with experts. Which ones a row uses follows from that row alone; each
// expert multiplies all rows that use it together, and a product's bits do not depend on how many there are
// (numerics 7). Between two barriers each:
//
//   router | choice | who is whose | rows gathered by expert | gate, up, activation, quantise | down
//   weighted sum, in the order of the choice (the next stage is split by the same rows)
//
// A place is one row at one expert: places are numbered by expert, and of one expert by row.
#include <algorithm>

#include "base/check.h"
#include "model/workspace.h"

namespace coppice::core {

void Context::Workspace::feed_forward_by_experts(const LayerWeights& layer, const Lane& lane) {
  Products router;
  router.inputs = &normed;
  router.add(layer.router, router_out, router_stride);
  if (lane.thread == 0) weight_bytes += layer.router.packed.bytes();
  if (const Span1 mine = lane.share_of(router, 0); mine.begin < mine.end)
    kernels.matmul(router.task(0, static_cast<int>(lane.live.size())), mine.begin, mine.end);
  end_stage(PassStage::gate_up, lane);
  if (tap != nullptr) show(router, lane);
  choose(lane);
  end_stage(PassStage::gate_up, lane);
  if (lane.thread == 0) place_rows(lane.live.size());
  pool.barrier();
  gather(layer, lane);
  end_stage(PassStage::gate_up, lane);
  multiply_experts(layer, {&ExpertWeights::gate, &ExpertWeights::up}, lane);
  activate_experts(layer, lane);
  end_stage(PassStage::gate_up, lane);
  multiply_experts(layer, {&ExpertWeights::down}, lane);
  end_stage(PassStage::down, lane);
  add_experts(lane);
}

void Context::Workspace::choose(const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(lane.live.size()));
  const auto experts = static_cast<std::size_t>(config.experts);
  for (int j = mine.begin; j < mine.end; ++j) {
    const auto row = static_cast<std::size_t>(j);
    const std::span<const float> logits(router_out + row * router_stride, experts);
    if (!all_finite(logits.data(), experts)) not_finite(lane.stage);
    choose_experts(logits, config.experts_used, choices.data() + row * used());
  }
}

// Counting sort by expert.
void Context::Workspace::place_rows(std::size_t live_rows) {
  std::fill(first_place.begin(), first_place.end(), 0);
  const std::size_t count = live_rows * used();
  for (std::size_t c = 0; c < count; ++c) ++first_place[static_cast<std::size_t>(choices[c].expert) + 1];
  for (std::size_t e = 1; e < first_place.size(); ++e) first_place[e] += first_place[e - 1];
  std::copy(first_place.begin(), first_place.end(), next_place.begin());
  for (std::size_t c = 0; c < count; ++c) {
    const int place = next_place[static_cast<std::size_t>(choices[c].expert)]++;
    place_of[c] = place;
    choice_at[static_cast<std::size_t>(place)] = static_cast<int>(c);
  }
}

void Context::Workspace::gather(const LayerWeights& layer, const Lane& lane) {
  const bool codes = layer.experts[0].gate.packed.quantised() || layer.experts[0].up.packed.quantised();
  const auto width = static_cast<std::size_t>(hidden), groups = width / kBlockInputs;
  const Span1 mine = lane.share_of(first_place.back());
  for (int place = mine.begin; place < mine.end; ++place) {
    const auto to = static_cast<std::size_t>(place);
    const auto from = static_cast<std::size_t>(choice_at[to]) / used();
    std::copy_n(normed.x + from * width, width, gathered.x + to * width);
    if (!codes) continue;
    std::copy_n(normed.codes + from * width, width, gathered.codes + to * width);
    std::copy_n(normed.scales + from * groups, groups, gathered.scales + to * groups);
    std::copy_n(normed.scaled_sums + from * groups, groups, gathered.scaled_sums + to * groups);
    std::copy_n(normed.sums + from * groups, groups, gathered.sums + to * groups);
    std::copy_n(normed.half_sums + from * groups, groups, gathered.half_sums + to * groups);
  }
}

MatmulTask Context::Workspace::expert_task(const WeightMatrix& weights_of, const Inputs& inputs, float* y,
                                           std::size_t y_stride, std::size_t expert) const {
  const auto first = static_cast<std::size_t>(first_place[expert]);
  const auto width = static_cast<std::size_t>(weights_of.packed.inputs), groups = width / kBlockInputs;
  MatmulTask task;
  task.weights = &weights_of.packed;
  task.x = inputs.x + first * width;
  task.q = {inputs.codes + first * width,        inputs.scales + first * groups,
            inputs.scaled_sums + first * groups, inputs.sums + first * groups,
            inputs.half_sums + first * groups,   weights_of.packed.inputs};
  task.y = y + first * y_stride;
  task.y_stride = y_stride;
  task.rows = first_place[expert + 1] - first_place[expert];
  return task;
}

// Each thread has the same outputs of all matrices of one width, so that it can activate what it has made.
void Context::Workspace::multiply_experts(const LayerWeights& layer,
                                          std::initializer_list<WeightMatrix ExpertWeights::*> roles,
                                          const Lane& lane) {
  const bool down = *roles.begin() == &ExpertWeights::down;
  const Inputs& inputs = down ? activated : gathered;
  const auto task_of = [&](std::size_t expert, WeightMatrix ExpertWeights::*role) {
    float* y = down ? expert_out : role == &ExpertWeights::gate ? gate : up;
    return expert_task(layer.experts[expert].*role, inputs, y, down ? out_stride : ff_stride, expert);
  };
  for (std::size_t expert = 0; expert < layer.experts.size(); ++expert) {
    if (first_place[expert] == first_place[expert + 1]) continue;
    for (const auto role : roles) {
      const PackedMatrix& matrix = (layer.experts[expert].*role).packed;
      if (lane.thread == 0) weight_bytes += matrix.bytes();
      const Span1 mine = lane.share_of(matrix.groups());
      if (mine.begin < mine.end) kernels.matmul(task_of(expert, role), mine.begin, mine.end);
    }
  }
  if (tap == nullptr) return;
  pool.barrier();
  for (std::size_t expert = 0; lane.thread == 0 && expert < layer.experts.size(); ++expert)
    for (const auto role : roles)
      if (const MatmulTask task = task_of(expert, role); task.rows > 0)
        tap->matmul((layer.experts[expert].*role).name.c_str(), task, task.x);
  pool.barrier();
}

void Context::Workspace::activate_experts(const LayerWeights& layer, const Lane& lane) {
  const Span1 mine = lane.share_of(layer.experts[0].up.packed.groups());
  const int column = mine.begin * kGroupOutputs;
  const int count = std::min(mine.end * kGroupOutputs, feed_forward) - column;
  if (count <= 0) return;
  const bool quantise = layer.experts[0].down.packed.quantised();
  for (std::size_t place = 0; place < static_cast<std::size_t>(first_place.back()); ++place) {
    const std::size_t at = place * static_cast<std::size_t>(feed_forward) + static_cast<std::size_t>(column);
    const std::size_t from = place * ff_stride + static_cast<std::size_t>(column);
    activation(gate + from, up + from, activated.x + at, count);
    quantise_stretch(activated, at, count, quantise, lane.stage);
  }
}

void Context::Workspace::add_experts(const Lane& lane) {
  const Span1 mine = lane.share_of(static_cast<int>(lane.live.size()));
  for (int j = mine.begin; j < mine.end; ++j) {
    float* to = out + static_cast<std::size_t>(j) * out_stride;
    std::fill_n(to, hidden, 0.0f);
    for (std::size_t k = 0; k < used(); ++k) {
      const std::size_t choice = static_cast<std::size_t>(j) * used() + k;
      float* from = expert_out + static_cast<std::size_t>(place_of[choice]) * out_stride;
      kernels.scale(choices[choice].weight, from, hidden);
      kernels.add(from, to, hidden);
    }
  }
}

}  // namespace coppice::core
