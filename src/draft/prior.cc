#include "draft/prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/check.h"
#include "base/os.h"
#include "draft/mixture.h"
#include "draft/model_drafter.h"

namespace coppice::core {
namespace {

constexpr std::string_view kMagic = "coppice-mixer 1";
constexpr int kMostBuckets = 64;

int drafter_features(const PriorSection& section) {
  int features = kOwnFeatures;
  for (const auto& drafter : section.drafters) features += drafter.second;
  return features;
}

// Reads words line by line and says where it is.
class PriorReader {
 public:
  PriorReader(std::string_view text, std::string name) : in_(std::string(text)), name_(std::move(name)) {}

  Result<MixerPrior> read() {
    MixerPrior prior;
    prior.name = name_;
    if (!next() || line_ != kMagic)
      return wrong("this is not a mixer prior; it should begin with `" + std::string(kMagic) + "`");
    while (next()) {
      COPPICE_TRY(PriorSection section, read_section());
      prior.sections.push_back(std::move(section));
    }
    return prior;
  }

 private:
  bool next() {
    while (std::getline(in_, line_)) {
      ++number_;
      if (!line_.empty() && line_.back() == '\r') line_.pop_back();
      if (!line_.empty()) return true;
    }
    return false;
  }
  tl::unexpected<Error> wrong(const std::string& what) const {
    return fail(fmt::format("{}, line {}: {}", name_, number_, what));
  }

  Result<PriorSection> read_section() {
    PriorSection section;
    std::istringstream words(line_);
    std::string word;
    if (!(words >> word) || word != "mix") return wrong("`mix NAME:FEATURES ...` should stand here");
    while (words >> word) {
      const std::size_t colon = word.rfind(':');
      const int features = colon == std::string::npos ? 0 : std::atoi(word.c_str() + colon + 1);
      if (features < 1 || features > kMaxFeatures) return wrong("`" + word + "` should be NAME:FEATURES");
      section.drafters.emplace_back(word.substr(0, colon), features);
    }
    if (!next() || std::sscanf(line_.c_str(), "buckets %d", &section.buckets) != 1 || section.buckets < 1 ||
        section.buckets > kMostBuckets)
      return wrong(fmt::format("`buckets N` should stand here, N from 1 to {}", kMostBuckets));
    if (!next() || line_ != fmt::format("own {} noise {}", kOwnFeatures, kNoiseFeatures))
      return wrong(fmt::format("this prior was made by another version; `own {} noise {}` is known here",
                               kOwnFeatures, kNoiseFeatures));
    const int features = drafter_features(section);
    if (features > kMaxFeatures) return wrong(fmt::format("more than {} features", kMaxFeatures));
    COPPICE_TRY_STATUS(read_weights(section, "greedy", features));
    COPPICE_TRY_STATUS(read_weights(section, "sampled", features));
    COPPICE_TRY_STATUS(read_weights(section, "noise", kNoiseFeatures));
    if (!next() || line_ != "end") return wrong("`end` should stand here");
    return section;
  }

  Status read_weights(PriorSection& section, const char* what, int count) {
    for (int bucket = 0; bucket < section.buckets; ++bucket) {
      const std::string start = fmt::format("{} {} ", what, bucket);
      if (!next() || line_.compare(0, start.size(), start) != 0)
        return wrong("`" + start + "...` should stand here");
      std::istringstream numbers(line_.substr(start.size()));
      std::string word;
      for (int i = 0; i < count; ++i) {
        float weight = 0;  // from_chars: whatever the host's locale takes for a decimal point
        const char* end = numbers >> word ? word.data() + word.size() : word.data();
        const auto [stop, error] = std::from_chars(word.data(), end, weight);
        if (error != std::errc() || stop != end || !std::isfinite(weight))
          return wrong(fmt::format("weight {} of {} should be a finite number", i + 1, count));
        section.weights.push_back(weight);
      }
      if (numbers >> word) return wrong(fmt::format("more than {} weights", count));
    }
    return {};
  }

  std::istringstream in_;
  std::string name_, line_;
  int number_ = 0;
};

std::string mix_text(const PriorSection& section) {
  std::string text;
  for (const auto& [name, features] : section.drafters) text += (text.empty() ? "" : " | ") + name;
  return text;
}

// Where the features of each drafter of `grower` begin in the section; empty if it does not fit.
// `cheap`: models are left out of the comparison and have offset 0.
std::vector<int> offsets_in(const PriorSection& section, const Grower& grower, bool cheap = false) {
  if (section.buckets != grower.buckets()) return {};
  std::vector<bool> used(section.drafters.size());
  std::vector<int> offsets;
  for (const auto& drafter : grower.drafters()) {
    if (cheap && drafter->shape().costly) {
      offsets.push_back(0);
      continue;
    }
    int offset = kOwnFeatures;
    std::size_t i = 0;
    for (; i < section.drafters.size(); ++i) {
      const auto& [name, features] = section.drafters[i];
      if (!used[i] && name == drafter->name() && features == drafter->shape().features) break;
      offset += features;
    }
    if (i == section.drafters.size()) return {};
    used[i] = true;
    offsets.push_back(offset);
  }
  if (std::find(used.begin(), used.end(), false) != used.end()) return {};
  return offsets;
}

// The section's weights in the order of the grower's drafters.
std::vector<float> arranged(const PriorSection& section, const Grower& grower,
                            const std::vector<int>& offsets) {
  const int features = grower.features();
  std::vector<float> weights;
  for (int set = 0; set < 2 * section.buckets; ++set) {
    const float* from = &section.weights[static_cast<std::size_t>(set) * features];
    weights.insert(weights.end(), from, from + kOwnFeatures);
    for (std::size_t d = 0; d < offsets.size(); ++d)
      weights.insert(weights.end(), from + offsets[d],
                     from + offsets[d] + grower.drafters()[d]->shape().features);
  }
  const auto noise = section.weights.end() - section.buckets * kNoiseFeatures;
  weights.insert(weights.end(), noise, section.weights.end());
  return weights;
}

// Beside a model, what the cheap drafters say counts for somewhat less. As fitted (coppice_fit_mixer --mix)
// for SmolLM2 with a third of its layers dropped as the draft; a better draft is soon believed more.
constexpr float kCheapBesideAModel = 0.75f;
constexpr float kConstantBesideAModel = 0.5f;
constexpr float kModelBesideCheap[ModelDrafter::kFeatures] = {0.45f, 2.0f, -0.6f, 0.2f, -0.5f, 0.3f, 0.6f};
// A model alone is believed: its feature 1 is a quarter of the logit of its chance.
constexpr float kModelAlone[ModelDrafter::kFeatures] = {0, 3.0f, 0, 0, 0, 0, 0};

std::vector<float> composed(const PriorSection* cheap, const Grower& grower,
                            const std::vector<int>& offsets) {
  std::vector<float> weights = Mixture::untaught(grower.features(), grower.buckets());
  const int features = grower.features();
  const int models = static_cast<int>(std::count(offsets.begin(), offsets.end(), 0));
  const int cheap_features = cheap == nullptr ? 0 : drafter_features(*cheap);
  for (int set = 0; set < 2 * grower.buckets(); ++set) {
    float* to = &weights[static_cast<std::size_t>(set) * features];
    const float* from =
        cheap == nullptr ? nullptr : &cheap->weights[static_cast<std::size_t>(set) * cheap_features];
    to[0] = from == nullptr ? 0.0f : kConstantBesideAModel * from[0];
    to += kOwnFeatures;
    for (std::size_t d = 0; d < offsets.size(); ++d) {
      const int n = grower.drafters()[d]->shape().features;
      for (int i = 0; i < n && offsets[d] != 0; ++i) to[i] = kCheapBesideAModel * from[offsets[d] + i];
      if (offsets[d] == 0 && n == ModelDrafter::kFeatures)
        for (int i = 0; i < n; ++i)
          to[i] = (from == nullptr ? kModelAlone : kModelBesideCheap)[i] / static_cast<float>(models);
      to += n;
    }
  }
  const auto noise = static_cast<std::ptrdiff_t>(grower.buckets()) * kNoiseFeatures;
  if (cheap != nullptr) std::copy(cheap->weights.end() - noise, cheap->weights.end(), weights.end() - noise);
  return weights;
}

}  // namespace

Result<MixerPrior> parse_prior(std::string_view text, std::string name) {
  return PriorReader(text, std::move(name)).read();
}

Result<MixerPrior> load_prior(const std::string& path) {
  COPPICE_TRY(const std::string text, read_file(path));
  return parse_prior(text, path);
}

std::string to_string(const PriorSection& section) {
  std::string text = "mix";
  for (const auto& [name, features] : section.drafters) text += fmt::format(" {}:{}", name, features);
  text += fmt::format("\nbuckets {}\nown {} noise {}\n", section.buckets, kOwnFeatures, kNoiseFeatures);
  const float* weight = section.weights.data();
  const int features = drafter_features(section);
  for (const auto& [what, count] :
       {std::pair{"greedy", features}, std::pair{"sampled", features}, std::pair{"noise", kNoiseFeatures}}) {
    for (int bucket = 0; bucket < section.buckets; ++bucket) {
      text += fmt::format("{} {}", what, bucket);
      for (int i = 0; i < count; ++i) text += fmt::format(" {:.4g}", *weight++);
      text += '\n';
    }
  }
  return text + "end\n";
}

PriorSection make_section(const Grower& grower, std::span<const float> weights) {
  PriorSection section;
  for (const auto& drafter : grower.drafters())
    section.drafters.emplace_back(drafter->name(), drafter->shape().features);
  section.buckets = grower.buckets();
  section.weights.assign(weights.begin(), weights.end());
  COPPICE_CHECK(section.weights.size() == Mixture::prior_size(grower.features(), grower.buckets()));
  return section;
}

Status apply_prior(const MixerPrior& prior, Grower& grower) {
  for (const auto& drafter : grower.drafters()) {
    auto* stage = dynamic_cast<ModelDrafter*>(drafter.get());
    // Inside a stage a prior is welcome where it fits, and not needed.
    if (stage != nullptr && stage->inner() != nullptr) (void)apply_prior(prior, *stage->inner());
  }
  for (const PriorSection& section : prior.sections) {
    const std::vector<int> offsets = offsets_in(section, grower);
    if (!offsets.empty()) return grower.set_prior(arranged(section, grower, offsets));
  }
  std::string have;
  for (const PriorSection& section : prior.sections)
    have += (have.empty() ? "`" : ", `") + mix_text(section) + "`";
  std::string wanted;
  for (const auto& drafter : grower.drafters())
    wanted += (wanted.empty() ? "" : " | ") + std::string(drafter->name());
  return fail(fmt::format("{} was fitted for {}, not for the mix `{}`; leave the prior out or fit one",
                          prior.name, have.empty() ? "no mix" : have, wanted));
}

void compose_prior(const MixerPrior& prior, Grower& grower) {
  const auto costly = [](const auto& drafter) { return drafter->shape().costly; };
  if (std::none_of(grower.drafters().begin(), grower.drafters().end(), costly)) return;
  for (const PriorSection& section : prior.sections) {
    const std::vector<int> offsets = offsets_in(section, grower, true);
    if (!offsets.empty()) return (void)grower.set_prior(composed(&section, grower, offsets));
  }
  if (std::all_of(grower.drafters().begin(), grower.drafters().end(), costly))
    (void)grower.set_prior(composed(nullptr, grower, std::vector<int>(grower.drafters().size())));
}

}  // namespace coppice::core
