#include "draft/prior.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sstream>

#include "base/check.h"
#include "base/os.h"
#include "draft/mixture.h"
#include "draft/model_drafter.h"

namespace coppice::core {
namespace {

constexpr int kMostBuckets = 64;
// Of a weight: far beyond what a fit gives, and small enough that it can be read again when it was rounded.
constexpr float kMostWeight = 1e30f;

// A stage says what its draft alone would say: they share their weights.
std::string kind_of(std::string_view name) { return std::string(name == "stage" ? "model" : name); }

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
    if (next() && line_ == "coppice-mixer 1")
      return wrong("this prior was made by an earlier version; fit it anew with `coppice train mixer`");
    if (line_ != kPriorMagic)
      return wrong("this is not a mixer prior; it should begin with `" + std::string(kPriorMagic) + "`");
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
      section.drafters.emplace_back(kind_of(word.substr(0, colon)), features);
    }
    if (!next() || std::sscanf(line_.c_str(), "buckets %d", &section.buckets) != 1 || section.buckets < 1 ||
        section.buckets > kMostBuckets)
      return wrong(fmt::format("`buckets N` should stand here, N from 1 to {}", kMostBuckets));
    int own = 0, noise = 0, hidden = 0, read = 0;
    if (!next() ||
        std::sscanf(line_.c_str(), "own %d noise %d hidden %d%n", &own, &noise, &hidden, &read) != 3 ||
        static_cast<std::size_t>(read) != line_.size() || own != kOwnFeatures || noise != kNoiseFeatures ||
        hidden < 0 || hidden > kUnits)
      return wrong(
          fmt::format("this prior was made by another version; `own {} noise {} hidden N` is known here, N "
                      "from 0 to {}",
                      kOwnFeatures, kNoiseFeatures, kUnits));
    const int features = drafter_features(section);
    if (features > kMaxFeatures) return wrong(fmt::format("more than {} features", kMaxFeatures));
    const MixerShape shape = Mixture::shape(features, section.buckets);
    section.weights.reserve(Mixture::prior_size(features, section.buckets));
    for (const std::string mode : {"greedy", "sampled"}) {
      COPPICE_TRY_STATUS(read_rows(section.weights, mode, section.buckets, features));
      std::vector<float> units;  // [hidden, 1 + features]
      COPPICE_TRY_STATUS(read_rows(units, mode + "-unit", hidden, 1 + features));
      const std::size_t at = section.weights.size();
      section.weights.resize(at + shape.inputs() + kUnits);
      float* in = &section.weights[at];
      for (int u = 0; u < hidden; ++u) {
        const float* unit = &units[static_cast<std::size_t>(u) * (1 + features)];
        in[shape.inputs() + u] = unit[0];
        for (int f = 0; f < features; ++f) in[f * kUnits + u] = unit[1 + f];
      }
    }
    COPPICE_TRY_STATUS(read_rows(section.weights, "noise", section.buckets, kNoiseFeatures));
    if (!next() || line_ != "end") return wrong("`end` should stand here");
    return section;
  }

  Status read_rows(std::vector<float>& weights, const std::string& what, int rows, int count) {
    for (int row = 0; row < rows; ++row) {
      const std::string start = fmt::format("{} {} ", what, row);
      if (!next() || line_.compare(0, start.size(), start) != 0)
        return wrong("`" + start + "...` should stand here");
      std::istringstream numbers(line_.substr(start.size()));
      std::string word;
      for (int i = 0; i < count; ++i) {
        float weight = 0;  // from_chars: whatever the host's locale takes for a decimal point
        const char* end = numbers >> word ? word.data() + word.size() : word.data();
        const auto [stop, error] = std::from_chars(word.data(), end, weight);
        if (error != std::errc() || stop != end || !(std::abs(weight) <= kMostWeight))
          return wrong(fmt::format("weight {} of {} should be a finite number, from {} to {}", i + 1, count,
                                   -kMostWeight, kMostWeight));
        weights.push_back(weight);
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

// Drafters that a mix may have beside those a section was fitted for: they say what they think themselves.
bool speaks_for_itself(const DrafterShape& shape) { return shape.costly || shape.custom; }

// Where the features of each drafter of `grower` begin in the section; empty if it does not fit.
// `cheap`: those that speak for themselves are left out of the comparison and have offset 0.
std::vector<int> offsets_in(const PriorSection& section, const Grower& grower, bool cheap = false) {
  if (section.buckets != grower.buckets()) return {};
  std::vector<bool> used(section.drafters.size());
  std::vector<int> offsets;
  for (const auto& drafter : grower.drafters()) {
    if (cheap && speaks_for_itself(drafter->shape())) {
      offsets.push_back(0);
      continue;
    }
    int offset = kOwnFeatures;
    std::size_t i = 0;
    for (; i < section.drafters.size(); ++i) {
      const auto& [name, features] = section.drafters[i];
      if (!used[i] && name == kind_of(drafter->name()) && features == drafter->shape().features) break;
      offset += features;
    }
    if (i == section.drafters.size()) return {};
    used[i] = true;
    offsets.push_back(offset);
  }
  if (std::find(used.begin(), used.end(), false) != used.end()) return {};
  return offsets;
}

// The section's column for each of the grower's features; -1: it has none.
std::vector<int> columns_of(const Grower& grower, const std::vector<int>& offsets) {
  std::vector<int> columns(kOwnFeatures);
  std::iota(columns.begin(), columns.end(), 0);
  for (std::size_t d = 0; d < offsets.size(); ++d)
    for (int i = 0; i < grower.drafters()[d]->shape().features; ++i)
      columns.push_back(offsets[d] == 0 ? -1 : offsets[d] + i);
  return columns;
}

// The section's weights of one mode for other columns; 0 where it has none.
std::vector<float> arranged_mode(const PriorSection& section, int mode, const std::vector<int>& columns) {
  const int features = static_cast<int>(columns.size());
  const MixerShape from_shape = Mixture::shape(drafter_features(section), section.buckets);
  const MixerShape to_shape = Mixture::shape(features, section.buckets);
  std::vector<float> to(to_shape.weights(), 0.0f);
  const float* from = section.weights.data() + mode * from_shape.weights();
  for (int f = 0; f < features; ++f) {
    if (columns[f] < 0) continue;
    for (int b = 0; b < section.buckets; ++b)
      to[b * features + f] = from[b * from_shape.features + columns[f]];
    std::copy_n(from + from_shape.sums() + columns[f] * kUnits, kUnits,
                to.begin() + static_cast<std::ptrdiff_t>(to_shape.sums()) + f * kUnits);
  }
  std::copy_n(from + from_shape.sums() + from_shape.inputs(), kUnits, to.end() - kUnits);
  return to;
}

std::span<const float> noise_part(const PriorSection& section) {
  const std::size_t size = Mixture::noise_shape(section.buckets).weights();
  return std::span(section.weights).last(size);
}

// The section's weights in the order of the grower's drafters.
std::vector<float> arranged(const PriorSection& section, const Grower& grower,
                            const std::vector<int>& offsets) {
  const std::vector<int> columns = columns_of(grower, offsets);
  std::vector<float> weights = arranged_mode(section, 0, columns);
  const std::vector<float> sampled = arranged_mode(section, 1, columns);
  weights.insert(weights.end(), sampled.begin(), sampled.end());
  const auto noise = noise_part(section);
  weights.insert(weights.end(), noise.begin(), noise.end());
  return weights;
}

// Beside a model, what the cheap drafters say counts for somewhat less. As fitted for SmolLM2 with a third of
// its layers dropped as the draft; a better draft is soon believed more.
constexpr float kCheapBesideAModel = 0.75f;
constexpr float kModelBesideCheap[ModelDrafter::kFeatures] = {0, 2.0f, -0.6f, 0.2f, -0.5f, 0.3f, 0.6f};
// A model alone is believed: its feature 1 is a quarter of the logit of its chance.
constexpr float kModelAlone[ModelDrafter::kFeatures] = {0, 4.0f, 0, 0, 0, 0, 0};

std::vector<float> composed(const PriorSection* cheap, const Grower& grower,
                            const std::vector<int>& offsets) {
  std::vector<float> weights = Mixture::untaught(grower.features(), grower.buckets());
  const MixerShape shape = Mixture::shape(grower.features(), grower.buckets());
  const int models = static_cast<int>(std::count(offsets.begin(), offsets.end(), 0));
  for (int mode = 0; mode < 2; ++mode) {
    float* all = weights.data() + mode * shape.weights();
    if (cheap != nullptr) {
      const std::vector<float> known = arranged_mode(*cheap, mode, columns_of(grower, offsets));
      for (std::size_t i = 0; i < known.size(); ++i) {
        const bool into_a_unit = i >= shape.sums() && i < shape.sums() + shape.inputs();
        all[i] = into_a_unit ? known[i] : kCheapBesideAModel * known[i];
      }
    }
    for (int b = 0; b < grower.buckets(); ++b) {
      float* to = all + static_cast<std::size_t>(b) * shape.features;
      if (cheap == nullptr) to[0] = 0;
      to += kOwnFeatures;
      for (std::size_t d = 0; d < offsets.size(); ++d) {
        const int n = grower.drafters()[d]->shape().features;
        if (offsets[d] == 0 && n == ModelDrafter::kFeatures)
          for (int i = 0; i < n; ++i)
            to[i] = (cheap == nullptr ? kModelAlone : kModelBesideCheap)[i] / static_cast<float>(models);
        to += n;
      }
    }
  }
  if (cheap != nullptr) {
    const auto noise = noise_part(*cheap);
    std::copy(noise.begin(), noise.end(), weights.end() - static_cast<std::ptrdiff_t>(noise.size()));
  }
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
  const int features = drafter_features(section);
  const MixerShape shape = Mixture::shape(features, section.buckets);
  const auto row = [&](std::string_view what, int number, const auto& weight, int count) {
    text += fmt::format("{} {}", what, number);
    for (int i = 0; i < count; ++i) text += fmt::format(" {:.4g}", weight(i));
    text += '\n';
  };
  // Units that no mode uses stand behind those that one does.
  const float* first = section.weights.data();
  int hidden = kUnits;
  const auto silent = [&](int u) {
    return first[shape.weights() - kUnits + u] == 0 && first[2 * shape.weights() - kUnits + u] == 0;
  };
  while (hidden > 0 && silent(hidden - 1)) --hidden;
  text += fmt::format("\nbuckets {}\nown {} noise {} hidden {}\n", section.buckets, kOwnFeatures,
                      kNoiseFeatures, hidden);
  for (const std::string mode : {"greedy", "sampled"}) {
    for (int b = 0; b < section.buckets; ++b)
      row(
          mode, b, [&](int i) { return first[b * features + i]; }, features);
    const float* in = first + shape.sums();
    for (int u = 0; u < hidden; ++u)
      row(
          mode + "-unit", u,
          [&](int i) { return i == 0 ? in[shape.inputs() + u] : in[(i - 1) * kUnits + u]; }, 1 + features);
    first += shape.weights();
  }
  for (int b = 0; b < section.buckets; ++b, first += kNoiseFeatures)
    row(
        "noise", b, [&](int i) { return first[i]; }, kNoiseFeatures);
  return text + "end\n";
}

std::string to_string(const MixerPrior& prior) {
  std::string text = fmt::format("{}\n", kPriorMagic);
  for (const PriorSection& section : prior.sections) text += to_string(section);
  return text;
}

void put_section(MixerPrior& prior, PriorSection section) {
  const auto names = [](const PriorSection& s) {
    std::vector<std::string> all;
    for (const auto& drafter : s.drafters) all.push_back(drafter.first);
    std::sort(all.begin(), all.end());
    return all;
  };
  for (PriorSection& there : prior.sections)
    if (names(there) == names(section)) return (void)(there = std::move(section));
  prior.sections.push_back(std::move(section));
}

PriorSection make_section(const Grower& grower, std::span<const float> weights) {
  PriorSection section;
  for (const auto& drafter : grower.drafters())
    section.drafters.emplace_back(kind_of(drafter->name()), drafter->shape().features);
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
  const auto own_voice = [](const auto& drafter) { return speaks_for_itself(drafter->shape()); };
  if (std::none_of(grower.drafters().begin(), grower.drafters().end(), own_voice)) return;
  for (const PriorSection& section : prior.sections) {
    const std::vector<int> offsets = offsets_in(section, grower, true);
    if (!offsets.empty()) return (void)grower.set_prior(composed(&section, grower, offsets));
  }
  if (std::all_of(grower.drafters().begin(), grower.drafters().end(), own_voice))
    (void)grower.set_prior(composed(nullptr, grower, std::vector<int>(grower.drafters().size())));
}

}  // namespace coppice::core
