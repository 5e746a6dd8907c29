// A request while the engine works on it.
#pragma once

#include <coppice/request.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/text_stream.h"
#include "policy/policy.h"
#include "sample/rejection.h"
#include "sample/sampler.h"
#include "tree/token_tree.h"

namespace coppice::core {

struct Active {
  Active(std::uint64_t id_, Request request_, Sampler sampler_, TextStream text_)
      : id(id_), request(std::move(request_)), sampler(std::move(sampler_)), text(std::move(text_)) {}

  std::uint64_t id;
  Request request;
  Sampler sampler;
  TextStream text;
  std::vector<Token> tokens;  // prompt and answer; never reallocates once started
  std::size_t prompt = 0;     // length of the prompt
  int limit = 0;              // tokens may grow to this many
  int slot = -1;              // of the grower
  int sequence = -1;          // of the cache
  Budget budget;              // what the request allows
  TokenTree tree;             // of this pass
  int first_row = 0;          // of its tree's root in this pass, or of its chunk
  int row_count = 0;
  std::optional<Rejection> rejection;
  std::uint64_t decisions = 0;  // running number of rejection's draws
  double deadline = std::numeric_limits<double>::infinity();
  bool done = false, cancelled = false;
  Generation generation;
  std::string fresh;  // text of this pass
  TreeTrace trace;
  // For a policy that wants them.
  bool planned = false;              // its prompt's surprise was asked for
  std::optional<float> surprise;     // of the prompt under a draft
  std::vector<float> state;          // [hidden] of the target at the token before the root; empty: not known
  std::vector<TokenChance> chances;  // of what this pass drew
  DecisionLog log;

  // The prompt is read up to its last token, which is the first root.
  bool decoding(int cached) const { return cached + 1 >= static_cast<int>(tokens.size()); }
};

}  // namespace coppice::core
