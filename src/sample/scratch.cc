// Processed logits are made in groups of 32 where somebody looks at them. With a row's maxima at hand a draw
// reads those, and of the logits only the groups that can matter; without them it makes all groups first and
// takes their maxima, and goes the same way from there.
#include <algorithm>
#include <limits>

#include "base/check.h"
#include "sample/sampler.h"
#include "sample/survivors.h"

namespace coppice::core {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::size_t chunks(int vocab, int of) { return static_cast<std::size_t>((vocab + of - 1) / of); }

}  // namespace

Sampler::Scratch::Scratch(int vocab)
    : logits(vocab),
      maxima(chunks(vocab, kLogitGroup)),
      made(chunks(vocab, kLogitGroup)),
      probabilities(vocab),
      order(vocab),
      noise_bound(vocab),
      noise_maxima(chunks(vocab, kLogitGroup)),
      noise_ready(chunks(vocab, kNoiseChunk)),
      keys(vocab) {}

void Sampler::Scratch::begin(const LogitRow& row) {
  COPPICE_CHECK(row.values.size() == logits.size());
  COPPICE_CHECK(row.maxima.empty() || row.maxima.size() == maxima.size());
  source = row;
  std::fill(made.begin(), made.end(), std::uint8_t{0});
  if (!row.maxima.empty()) {
    std::copy(row.maxima.begin(), row.maxima.end(), maxima.begin());
    return;
  }
  make_all();
  kernels().group_maxima(logits.data(), static_cast<int>(logits.size()), maxima.data());
}

void Sampler::Scratch::make(int group) {
  if (made[group]) return;
  made[group] = 1;
  const std::size_t first = static_cast<std::size_t>(group) * kLogitGroup;
  const std::size_t end = std::min(first + kLogitGroup, logits.size());
  for (std::size_t id = first; id < end; ++id) {
    const float x = source.values[id];
    logits[id] = x - x == 0.0f ? x : kNever;  // infinities and NaN give NaN
  }
}

void Sampler::Scratch::make_all() {
  for (std::size_t group = 0; group < made.size(); ++group) make(static_cast<int>(group));
}

void Sampler::Scratch::keep(std::span<const std::uint32_t> mask) {
  static_assert(kLogitGroup == 32);  // a word of the mask is a group's
  for (std::size_t group = 0; group < made.size(); ++group) {
    const std::size_t first = group * kLogitGroup;
    const std::size_t count = std::min<std::size_t>(kLogitGroup, logits.size() - first);
    const std::uint32_t all = count == kLogitGroup ? ~0u : (1u << count) - 1, word = mask[group] & all;
    if (word == all) continue;
    if (word != 0) make(static_cast<int>(group));
    made[group] = 1;
    for (std::size_t i = 0; i < count; ++i)
      if ((word >> i & 1) == 0) logits[first + i] = kNever;
    edited(static_cast<Token>(first));
  }
}

float& Sampler::Scratch::edit(Token token) {
  make(token / kLogitGroup);
  return logits[token];
}

void Sampler::Scratch::edited(Token token) {
  const int group = token / kLogitGroup;
  const float* first = &logits[static_cast<std::size_t>(group) * kLogitGroup];
  const float* end = std::min<const float*>(first + kLogitGroup, logits.data() + logits.size());
  maxima[group] = *std::max_element(first, end);  // no NaN among them
}

int Sampler::Scratch::argmax() const {
  const int group = kernels().argmax(maxima.data(), static_cast<int>(maxima.size()));
  if (group < 0 || maxima[group] == kNever) return -1;
  const float* from = made[group] ? logits.data() : source.values.data();
  int id = group * kLogitGroup;
  while (from[id] != maxima[group]) ++id;
  return id;
}

}  // namespace coppice::core
