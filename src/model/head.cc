// The output head: its matmul, and what is taken from the logits while they are in the cache of the thread
// that made them: whether they are finite, and the largest of each group of 32. A draw looks at the groups'
// maxima first and at the few groups that can matter after that (sample/scratch.cc).
#include <algorithm>

#include "kernels/composed.h"
#include "model/workspace.h"

namespace coppice::core {

void Context::Workspace::multiply_head(const Lane& lane) {
  const Products products = products_of(PassStage::head, lane.stage);
  const PackedMatrix& matrix = weights->head().packed;
  if (lane.thread == 0) weight_bytes += matrix.bytes();
  const Span1 mine = lane.share_of(products, 0);
  const int stretch = head_stretch(lane.live.size());
  MatmulTask work = products.task(0, static_cast<int>(lane.live.size()));
  for (int begin = mine.begin; begin < mine.end; begin += stretch) {
    const int end = std::min(begin + stretch, mine.end);
    work.next =
        end == mine.end ? next_weights(PassStage::head, lane) : matrix.stretch(end, mine.end, kFetchAhead);
    kernels.matmul(work, begin, end);
    if (tap == nullptr) look_at_logits(begin, end, lane);
  }
  if (tap == nullptr) return;
  pool.barrier();
  show_products(PassStage::head, lane);  // before scales and caps change what the product gave
  if (mine.begin < mine.end) look_at_logits(mine.begin, mine.end, lane);
}

// Checks groups [begin, end) of all rows, takes their maxima, and moves a trimmed head's to the full token
// ids.
void Context::Workspace::look_at_logits(int begin, int end, const Lane& lane) {
  const int first = begin * kGroupOutputs;
  const int count = std::min(end * kGroupOutputs, weights->head().packed.outputs) - first;
  for (std::size_t j = 0; j < lane.live.size(); ++j) {
    float* from = head_out + j * head_stride + first;
    if (config.logit_scale != 1.0f) kernels.scale(config.logit_scale, from, count);
    if (config.logit_cap > 0) soft_cap(kernels, config.logit_cap, from, count);
    float* largest = maxima + j * (head_stride / kGroupOutputs) + begin;
    if (!kernels.group_maxima(from, count, largest)) not_finite(lane.stage);
    if (weights->head_tokens.empty()) continue;
    const Token* ids = weights->head_tokens.data() + first;
    float* to = full_logits + j * static_cast<std::size_t>(config.vocab);
    for (int i = 0; i < count; ++i) to[ids[i]] = from[i];
  }
}

}  // namespace coppice::core
