// A row of a pass: one token at one place. Prefill chunks, trees of many requests and a draft's catch-up
// tokens are all rows.
#pragma once

#include <coppice/token.h>

namespace coppice::core {

inline constexpr int kCommitted = -1;

// kFeatures: the residual stream at the layers the context's options name.
enum Wants : unsigned { kNothing = 0, kLogits = 1, kHidden = 2, kFeatures = 4 };

struct Row {
  int sequence = 0;
  Token token = 0;
  int position = 0;  // its parent's plus one
  // Where its K and V go. kCommitted: it extends the sequence's committed positions (such rows of one
  // sequence stand in order of position in the pass, starting at length()). Else a scratch slot.
  int slot = kCommitted;
  // Slot of its parent. kCommitted: it sees the committed positions below its own (those of this pass
  // included) and itself. Else a scratch slot written by an earlier row of this pass or in an earlier pass
  // since the last keep().
  int parent_slot = kCommitted;
  unsigned wants = kNothing;
};

}  // namespace coppice::core
