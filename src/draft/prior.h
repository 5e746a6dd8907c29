// The mixer's prior: weights every request starts with, fitted once for a mix of drafters (mixer_fit.h,
// `coppice train mixer`). A text file of sections, one per mix:
//
//   coppice-mixer 2
//   mix lookup:24 ngram:15            drafters and how many features each has
//   buckets 8
//   own 2 noise 6 hidden 32           features of the grower itself, units of the hidden layer
//   greedy 0 w w w ...                one line per bucket; the own features, then the drafters' in mix order
//   greedy-unit 0 w w w w ...         one line per unit: the weight out of it, then those into it
//   sampled 0 w w w ...
//   sampled-unit 0 w w w w ...
//   noise 0 w w w ...
//   end
//
// A section fits a mix that has drafters of the same kinds and shapes, in any order: their files and options
// do not matter, and a `stage` is a `model`, whose answers it gives.
#pragma once

#include <coppice/error.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "draft/grower.h"

namespace coppice::core {

struct PriorSection {
  std::vector<std::pair<std::string, int>> drafters;  // kind, features
  int buckets = 1;
  std::vector<float> weights;  // as in Grower::set_prior(), all of it
};

struct MixerPrior {
  std::string name;  // the file, for messages
  std::vector<PriorSection> sections;
};

inline constexpr std::string_view kPriorMagic = "coppice-mixer 2";  // the first line

Result<MixerPrior> load_prior(const std::string& path);
// Errors name the line.
Result<MixerPrior> parse_prior(std::string_view text, std::string name);
std::string to_string(const PriorSection& section);
std::string to_string(const MixerPrior& prior);  // the whole file
// Replaces the section of the same mix (in whatever order), or adds one.
void put_section(MixerPrior& prior, PriorSection section);

// A section for this grower, with these weights.
PriorSection make_section(const Grower& grower, std::span<const float> weights);
// Sets the prior of the grower, and of the growers inside its stages where a section fits. An error when no
// section fits the outer mix: the sentence says which mixes the file was made for.
Status apply_prior(const MixerPrior& prior, Grower& grower);

// Fitted on SmolLM2's text; what the last tokens say depends little on the model. Applied by make_grower().
const MixerPrior& builtin_prior();

// For a mix with models or custom drafters in it that no section fits: the section of the other drafters
// alone if there is one, weakened, and each model or custom drafter believed.
void compose_prior(const MixerPrior& prior, Grower& grower);

}  // namespace coppice::core
