// Are guesses taken as often as their values say? The ratio of taken to expected ones, by bands of value,
// newer ones counting for more. Where little was seen it stays at what others saw.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace coppice::core {

class Calibration {
 public:
  static constexpr int kBands = 4;
  static constexpr double kLeast = 0.1, kMost = 1.5;  // of the ratio

  // `keep`: what a cycle leaves of what came before it, below 1.
  explicit Calibration(double keep) : keep_(keep) {}

  void restart(const Calibration& others) {
    for (int b = 0; b < kBands; ++b) {
      seen_[b] = {};
      prior_[b] = others.ratio(b);
    }
  }
  void next_cycle() {
    for (Seen& band : seen_) band.expected *= keep_, band.taken *= keep_;
  }
  void add(float value, bool taken) {
    Seen& band = seen_[band_of(value)];
    band.expected += value;
    band.taken += taken ? 1 : 0;
  }
  // The chance that a guess of this value is taken.
  float chance(float value) const {
    return std::min(1.0f, value * static_cast<float>(ratio(band_of(value))));
  }
  double ratio(int band) const {
    const Seen& b = seen_[band];
    return std::clamp((b.taken + kDoubt * prior_[band]) / (b.expected + kDoubt), kLeast, kMost);
  }

  // An octave each: 1 to 0.5, to 0.25, to 0.125, and everything below. Few, so that each sees enough.
  static int band_of(float value) {
    return std::clamp(static_cast<int>(-std::log2(std::max(value, 1e-6f))), 0, kBands - 1);
  }

 private:
  static constexpr double kDoubt = 1;  // taken guesses that what others saw counts for
  struct Seen {
    double expected = 0, taken = 0;
  };
  double keep_;
  std::array<Seen, kBands> seen_{};
  std::array<double, kBands> prior_ = {1, 1, 1, 1};
};

}  // namespace coppice::core
