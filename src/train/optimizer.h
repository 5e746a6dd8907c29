// AdamW (arXiv:1711.05101) with a running average of the weights, and all of its state as tensors with names.
#pragma once

#include <coppice/error.h>

#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "train/trainable.h"

namespace coppice::core::train {

struct StepSize {
  double rate = 0;
  double decay = 0;
  double clip = 0;     // 0: gradients are taken as they are
  double average = 0;  // of the running average; 0: it is the weights themselves
};

class Optimizer {
 public:
  explicit Optimizer(std::vector<Parameter>& parameters);  // which must outlive it

  // One step with the parameters' gradients, which are zero afterwards. Returns their norm before clipping;
  // not finite: nothing was changed.
  double step(const StepSize& size);
  std::int64_t steps() const { return steps_; }

  // Puts the average in the weights' place, and back. While it is there nothing may step.
  void swap_average();

  // Tensors of a checkpoint. The writer streams them: nothing may step before it is written.
  void save(gguf::Writer& writer) const;
  Status load(const gguf::File& file);  // errors name file and tensor

 private:
  struct State {
    torch::Tensor first, second, average;  // moments, running average: as the parameter
  };
  void update(std::size_t index, const StepSize& size, double scale);

  std::vector<Parameter>& parameters_;
  std::vector<State> states_;
  std::int64_t steps_ = 0;
};

}  // namespace coppice::core::train
