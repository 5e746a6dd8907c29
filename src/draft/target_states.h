// The states of a target along a text that it wrote: what a drafter that reads them is shown while the text
// is replayed (replay.h). The text is the answer, so all of it runs at once.
#pragma once

#include <coppice/error.h>

#include <memory>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "model/model.h"

namespace coppice::core {

class TargetStates {
 public:
  // `layers`: as Grower::feature_layers() gives them. `positions`: of the longest text.
  static Result<std::unique_ptr<TargetStates>> make(std::shared_ptr<const Model> target,
                                                    std::span<const int> layers, int positions,
                                                    ThreadPool& pool);

  // At every token but the last: nobody reads that one's. Valid until the next call.
  Result<Features> of(std::span<const Token> text);

 private:
  explicit TargetStates(std::unique_ptr<Context> context) : context_(std::move(context)) {}

  std::unique_ptr<Context> context_;
  int sequence_ = 0;
  std::vector<Row> pass_;
  std::vector<float> states_;  // [positions, layers, hidden]
  std::vector<const float*> rows_;
};

}  // namespace coppice::core
