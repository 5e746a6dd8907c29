// How a token is drawn from logits. A draw is argmax(logit + T * noise) over the survivors of the filters
// (Gumbel-max), where the noise is a pure function of (seed, stream, choice, index, token): the same options
// give the same text with speculation and without. docs/numerics.md has the rules.
//
// Order of application, always: bias and bans, penalties, temperature, top-k, typical-p, top-p, min-p,
// grammar, draw.
#pragma once

#include <coppice/error.h>
#include <coppice/grammar.h>
#include <coppice/token.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace coppice {

// `keyed`: the target's own draw with keyed noise; text is the same as without speculation, to the token.
// `rejection`: the classic rule (arXiv:2211.17192; trees without replacement as in arXiv:2305.09781): the
// same distribution, not the same text.
enum class Acceptance { keyed, rejection };

struct Sampling {
  float temperature = 0.0f;         // 0: greedy. [0, 100]
  int top_k = 0;                    // 0: off
  float top_p = 1.0f;               // (0, 1]; 1: off
  float min_p = 0.0f;               // [0, 1]; 0: off
  float typical_p = 1.0f;           // (0, 1]; 1: off
  float repetition_penalty = 1.0f;  // > 0; 1: off. Divides positive logits, multiplies negative ones
  float presence_penalty = 0.0f;    // subtracted once from every token seen in the window
  float frequency_penalty = 0.0f;   // subtracted once per occurrence in the window
  int penalty_window = 64;          // how many last tokens (prompt included) count; -1: all
  std::vector<std::pair<Token, float>> logit_bias;  // added to the logit
  std::vector<Token> banned;                        // never drawn
  bool ignore_eos = false;                          // end-of-text tokens are never drawn
  std::vector<std::string> stop;                    // the answer ends before the first of these
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;  // tells requests of one seed apart, where a caller wants that
  std::uint32_t choice = 0;  // tells the n answers of one request apart
  int max_tokens = 256;      // > 0
  int logprobs = -1;         // -1: off; n >= 0: the drawn token's log-probability and the n best
  Acceptance acceptance = Acceptance::keyed;
  // The answer is a text of this grammar, unless something else ends it first (StopReason says what). The
  // mask comes after the filters, or before them where it would leave nothing: what would have been allowed
  // anyway is drawn unchanged. Not with ignore_eos. Log-probabilities are those before filters and mask.
  std::optional<Grammar> grammar;

  // Names the first field that is out of range and what would be right. `vocab` bounds token ids.
  Status validate(int vocab) const;
};

}  // namespace coppice
