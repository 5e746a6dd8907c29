// The policy `auto`: as much speculation as pays, by what a pass costs and how likely guesses are to be
// taken.
//
// trim(): guesses of all requests are taken in order of value while expected tokens per expected second rise.
// A child is worth no more than its parent, so ancestors come first by themselves. Values are the mixer's,
// corrected by how often guesses of such value were taken of late (calibration.h).
//
// plan(): each request goes one of three ways: plain, with the cheap drafters, or with all of them. A way
// brings tokens and costs seconds; the best rate is taken. What is not taken is tried now and then (a probe),
// at a cost of at most kProbing of all time. Another pass of a draft must bring what its seconds bring
// elsewhere (Budget::pass_price); guesses that cannot pay are not grown (Budget::price, nodes).
#pragma once

#include <array>
#include <vector>

#include "policy/calibration.h"
#include "policy/policy.h"

namespace coppice::core {

class AutoPolicy : public Policy {
 public:
  explicit AutoPolicy(const PolicySetup& setup);

  void begin(int slot, int prompt) override;
  void plan(std::span<Decoding> requests) override;
  int prompt_rows(std::span<const Decoding> requests, int most) const override;
  void trim(std::span<Decoding> requests, int prompt_rows) override;
  void learn(std::span<const Decoding> requests, const PassTimes& times) override;
  const CostModel* costs() const override { return &costs_; }

 private:
  enum Way { kPlain, kCheap, kAll };
  static constexpr int kWays = 3;

  // What a way brought and cost of late, for one request in one pass.
  struct Account {
    double tokens = 1;
    double rows = 0;    // seconds of the pass for its guesses
    double passes = 0;  // of drafts
  };
  struct Guess {
    Token token;
    int parent, depth;
    float value;
  };
  struct Memory {
    std::array<Account, kWays> ways;
    std::array<int, kWays> unused{};  // passes since it went this way
    Calibration calibration{0.97};
    Way way = kCheap;
    int reach = 0;             // guesses worth growing
    double needed = 0;         // guesses that were worth a row, of late
    int behind = 0;            // tokens the drafts have not read
    double added = 0;          // expected seconds of its guesses in this pass
    double expected = 1;       // tokens of it
    std::vector<Guess> grown;  // [1 + wanted], the root first
  };
  struct Offer {
    float value;
    int request;  // of this pass
    int order;
  };

  Memory& memory_of(const Decoding& request) { return memory_[static_cast<std::size_t>(request.slot)]; }
  const Memory& memory_of(const Decoding& request) const {
    return memory_[static_cast<std::size_t>(request.slot)];
  }
  bool there(Way way) const;
  double seconds_of(const Memory& memory, Way way, double plain) const;
  Way best_way(const Memory& memory, double plain) const;
  void consider_probe(Memory& memory, Decoding& request, double plain);
  PassShape roots(std::span<const Decoding> requests) const;
  double cheapest_row(const PassShape& roots, int most) const;
  void remember(const Decoding& request, Memory& memory);
  void offer(std::span<Decoding> requests);
  std::size_t best_count(std::span<const Decoding> requests, PassShape pass, double spent) const;
  double usual_drafting(std::span<const Decoding> requests) const;
  void judge_guesses(const Decoding& request, Memory& memory);
  void judge_ways(const Decoding& request, Memory& memory, double draft_passes);
  void judge_times(std::span<const Decoding> requests, const PassTimes& times);

  PolicySetup setup_;
  CostModel costs_;
  std::vector<Memory> memory_;  // [slot]
  Calibration calibration_{0.995};
  std::array<Account, kWays> ways_;  // of all requests
  std::array<int, kWays> seen_{};
  Typical cheap_, guess_;            // seconds of the cheap drafters a request and pass; of one guess
  Typical draft_pass_, draft_row_;   // seconds of a pass of the costly ones; of a row of a long pass
  double tokens_ = 0, seconds_ = 0;  // expected of late: tokens_ / seconds_ is the rate
  double credit_ = 0;                // seconds that probes may cost
  int drafting_ = 0;                 // requests that ask the costly drafters in this pass
  PassShape shape_;                  // of this pass
  std::vector<Offer> offers_;
  std::vector<int> taken_;  // [request]
  std::vector<std::uint8_t> path_;
};

}  // namespace coppice::core
