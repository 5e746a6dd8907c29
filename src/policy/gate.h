// The gating network: how wide a slimmable draft should be for the next tokens, from what the target knows
// already. A perceptron of two layers over the last token's input embedding and the target's residual stream
// at the token before it (of the last token itself the target has computed nothing yet):
//
//   x = clamp((input - mean) * scale, +-kMostDeviations)       [2 hidden], the embedding first
//   alpha = 0.5 + sigmoid(out . max(in x + in_bias, 0) + out_bias)
//
// Learned by `coppice train gate` (gate_fit.h). It decides widths and never a text, so its arithmetic is
// plain f32. File: docs/file-formats.md, "Gates".
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <span>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "model/model.h"

namespace coppice::core {

inline constexpr int kMostGateUnits = 128;
inline constexpr float kLeastAlpha = 0.5f, kMostAlpha = 1.5f;
// A few dimensions of a residual stream are hundreds of deviations off at some tokens (begin of text, line
// ends); nothing is learned from how far.
inline constexpr float kMostDeviations = 6;

struct GateInputs {
  std::span<const float> embedding;  // [hidden] of the last token, as the target's table has it
  std::span<const float> hidden;     // [hidden] the target's residual stream at layer() of the token before
};

struct GateWeights {
  int hidden = 0;                   // of the target
  int layer = 0;                    // of the residual stream: where block `layer` begins
  int units = 0;                    // of the hidden layer
  std::vector<float> mean, scale;   // [2 hidden]
  std::vector<float> in;            // [2 hidden, units]
  std::vector<float> in_bias, out;  // [units]
  float out_bias = 0;

  int inputs() const { return 2 * hidden; }
};

// What a gate was made of, for whoever looks.
struct GateOrigin {
  std::string target, target_hash;  // file names, and hashes of the files (base/hash.h)
  std::string draft, draft_hash;
  std::string data, command;
};

class Gate {
 public:
  // Sizes that do not fit each other are a bug of the caller's.
  explicit Gate(GateWeights weights, GateOrigin origin = {});
  // Errors name the file and the key or tensor.
  static Result<Gate> read(const std::string& path);
  static Result<Gate> parse(const gguf::File& file);
  // The same answer whatever it sees.
  static Gate constant(float alpha, int hidden, int layer);

  // [0.5, 1.5], whatever the weights: 1 where they are so large that they say nothing. Does not allocate.
  // Both spans hold hidden() values.
  float alpha(const GateInputs& inputs) const;

  int layer() const { return weights_.layer; }
  int hidden() const { return weights_.hidden; }
  const GateWeights& weights() const { return weights_; }
  const GateOrigin& origin() const { return origin_; }
  // Whether it can read this target's states; the sentence says what differs.
  Status check(const Model& target) const;

 private:
  GateWeights weights_;
  GateOrigin origin_;
};

// Appears whole or not. Matrices are f16 in the file: what is read again is rounded so.
Status write_gate(const std::string& path, const Gate& gate);
std::vector<std::byte> gate_bytes(const Gate& gate);

// The row of the token in the target's table. out: [hidden]
void read_embedding(const Model& target, Token token, std::span<float> out);

}  // namespace coppice::core
