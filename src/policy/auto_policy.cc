#include "policy/auto_policy.h"

#include <algorithm>

#include "base/check.h"

namespace coppice::core {
namespace {

// Guesses must look so much better than none. The best of many counts by costs and chances that are estimates
// is seldom as good as it looks; and a gain that small is not worth the risk of a loss.
constexpr double kWorth = 1.04;
constexpr double kProbing = 0.015;  // of all time may go into probes
constexpr int kBetweenProbes = 4;   // passes
constexpr double kCuriosity = 32;   // of its guessed cost a first try may go beyond what there is to spend
constexpr double kStall = 4;        // a pass with prompt rows may take so many times what it takes without,
constexpr double kUnseen = 0.1;     // or so many seconds: a stream that stands still as long is not seen to
constexpr int kLeastPromptRows = 16;
constexpr double kRecent = 0.9;    // of the rate, what a pass leaves of those before it
constexpr double kStep = 1.0 / 8;  // of a request's accounts
constexpr double kCommonStep = 1.0 / 64;
constexpr int kAtFirst = 8;      // guesses grown
constexpr double kCatchUp = 32;  // passes that share what reading behind costs
constexpr int kLongPass = 16;    // rows of a draft's pass that are no longer free

}  // namespace

AutoPolicy::AutoPolicy(const PolicySetup& setup)
    : setup_(setup), costs_(setup.costs), memory_(static_cast<std::size_t>(setup.requests)) {
  for (Memory& memory : memory_) memory.grown.reserve(kMaxTreeNodes);
  const std::size_t requests = memory_.size();
  offers_.reserve(requests * kMaxTreeNodes);
  taken_.reserve(requests);
  path_.reserve(kMaxTreeNodes);
  // A way that nobody has gone yet is thought of well enough to be tried.
  ways_[kCheap].tokens = 1.5;
  ways_[kAll].tokens = 2.25;
  ways_[kAll].passes = 2;
  const double one = costs_.seconds({1, 0, 0}), many = costs_.seconds({65, 0, 0});
  draft_pass_ = Typical(setup.draft_share * one);
  draft_row_ = Typical(setup.draft_share * costs_.prompt_row() * (many - one) / 64);
}

void AutoPolicy::begin(int slot, int prompt) {
  Memory& memory = memory_[static_cast<std::size_t>(slot)];
  memory.ways = ways_;
  memory.unused = {};
  memory.calibration.restart(calibration_);
  memory.reach = kAtFirst;
  memory.needed = kAtFirst / 2.0;
  memory.behind = prompt;
}

// --- before growth ---

bool AutoPolicy::there(Way way) const {
  return way == kPlain || (way == kCheap ? setup_.cheap : setup_.draft_share > 0);
}

// Of one request in one pass; `plain`: its share of a pass without guesses.
double AutoPolicy::seconds_of(const Memory& memory, Way way, double plain) const {
  const Account& account = memory.ways[way];
  if (way == kPlain) return plain;
  double seconds = plain + account.rows + cheap_.value();
  if (way == kAll) {
    const int sharing = std::max(1, drafting_ + (memory.way == kAll ? 0 : 1));
    seconds += draft_pass_.value() * account.passes / sharing + draft_row_.value() * memory.behind / kCatchUp;
  }
  return seconds;
}

AutoPolicy::Way AutoPolicy::best_way(const Memory& memory, double plain) const {
  Way best = kPlain;
  double rate = kWorth / plain;
  for (const Way way : {kCheap, kAll}) {
    const double its = memory.ways[way].tokens / seconds_of(memory, way, plain);
    if (there(way) && its > rate) best = way, rate = its;
  }
  return best;
}

// The way that was not gone for longest, if what it may lose is there to be spent.
void AutoPolicy::consider_probe(Memory& memory, Decoding& request, double plain) {
  const Way best = memory.way;
  const double rate = memory.ways[best].tokens / seconds_of(memory, best, plain);
  Way other = kPlain;
  for (const Way way : {kCheap, kAll}) {
    if (way == best || !there(way) || memory.unused[way] < kBetweenProbes) continue;
    if (other == kPlain || memory.unused[way] > memory.unused[other]) other = way;
  }
  if (other == kPlain) return;
  double seconds = seconds_of(memory, other, plain);
  if (other == kAll) seconds += draft_row_.value() * memory.behind;
  double loss = std::max(0.0, seconds - memory.ways[other].tokens / rate);
  if (seen_[other] == 0) loss /= kCuriosity;
  if (loss > credit_) return;
  memory.way = other;
  request.probe = true;
}

PassShape AutoPolicy::roots(std::span<const Decoding> requests) const {
  PassShape shape;
  for (const Decoding& request : requests) shape.add_request(1, request.length);
  return shape;
}

// The least that a guess costs, when as many are added as is best.
double AutoPolicy::cheapest_row(const PassShape& roots, int most) const {
  const double without = costs_.seconds(roots);
  const double context = roots.positions / roots.rows;
  double least = costs_.seconds({roots.rows + 1, roots.positions, roots.row_positions + context}) - without;
  for (int n = 2; n <= most; ++n) {
    const PassShape more{roots.rows + n, roots.positions, roots.row_positions + n * context};
    least = std::min(least, (costs_.seconds(more) - without) / n);
  }
  return least;
}

void AutoPolicy::plan(std::span<Decoding> requests) {
  if (requests.empty()) return;
  const PassShape shape = roots(requests);
  const double plain = costs_.seconds(shape) / static_cast<double>(requests.size());
  const double rate = seconds_ > 0 ? tokens_ / seconds_ : 1 / plain;
  const double price = rate * (cheapest_row(shape, requests[0].limit.nodes) + guess_.value());
  int drafting = 0;
  for (Decoding& request : requests) {
    Memory& memory = memory_of(request);
    Budget& budget = request.budget = within_reach(request);
    memory.grown.clear();
    memory.added = 0;
    memory.expected = 1;
    if (budget.nodes == 0) {
      memory.way = kPlain;
      continue;
    }
    memory.way = best_way(memory, plain);
    consider_probe(memory, request, plain);
    if (memory.way == kPlain) budget.nodes = 0;
    drafting += memory.way == kAll ? 1 : 0;
    budget.costly = memory.way == kAll;
    // What may not be trimmed is kept to what would have been worth it of late.
    budget.nodes =
        std::min(budget.nodes, request.by_value ? memory.reach : static_cast<int>(memory.needed + 1.5));
    // What calibration could still lift to the price.
    budget.price = std::max(budget.price, static_cast<float>(price / Calibration::kMost));
    budget.pass_price = static_cast<float>(draft_pass_.value() * rate);
  }
  drafting_ = drafting;
}

int AutoPolicy::prompt_rows(std::span<const Decoding> requests, int most) const {
  if (requests.empty()) return most;
  PassShape shape = roots(requests);
  const double longest = std::max(kStall * costs_.seconds(shape), kUnseen);
  const double rows = shape.rows;
  int fit = std::min(most, kLeastPromptRows), high = most;  // the most that fit lie from one to the other
  while (fit < high) {
    const int n = (fit + high + 1) / 2;
    shape.rows = rows + n * costs_.prompt_row();
    if (costs_.seconds(shape) <= longest)
      fit = n;
    else
      high = n - 1;
  }
  return fit;
}

// --- after growth ---

// Keeps the tree as it has grown: also what is not verified may turn out to have been right.
void AutoPolicy::remember(const Decoding& request, Memory& memory) {
  const TokenTree& tree = *request.tree;
  memory.grown.clear();
  for (int n = 0; n < tree.size(); ++n)
    memory.grown.push_back({tree.token(n), n == 0 ? kNoNode : tree.parent(n), tree.depth(n), tree.value(n)});
}

// Chances of all guesses into offers_, best first; those of a request never rise.
void AutoPolicy::offer(std::span<Decoding> requests) {
  offers_.clear();
  for (std::size_t r = 0; r < requests.size(); ++r) {
    Memory& memory = memory_of(requests[r]);
    requests[r].wanted = requests[r].tree->size() - 1;
    remember(requests[r], memory);
    float least = 1;
    for (std::size_t n = 1; n < memory.grown.size(); ++n) {
      least = std::min(least, memory.calibration.chance(memory.grown[n].value));
      offers_.push_back({least, static_cast<int>(r), static_cast<int>(offers_.size())});
    }
  }
  std::sort(offers_.begin(), offers_.end(), [](const Offer& a, const Offer& b) {
    return a.value != b.value ? a.value > b.value : a.order < b.order;
  });
}

// How many of offers_ make the best rate. `pass`: without them; `spent`: seconds to be counted beside it.
std::size_t AutoPolicy::best_count(std::span<const Decoding> requests, PassShape pass, double spent) const {
  double tokens = static_cast<double>(requests.size());
  double best_tokens = kWorth * tokens, best_seconds = costs_.seconds(pass) + spent;
  std::size_t best = 0;
  for (std::size_t i = 0; i < offers_.size(); ++i) {
    pass.add_row(requests[static_cast<std::size_t>(offers_[i].request)].length);
    tokens += offers_[i].value;
    const double seconds = costs_.seconds(pass) + spent;
    if (tokens * best_seconds > best_tokens * seconds)
      best_tokens = tokens, best_seconds = seconds, best = i + 1;
  }
  return best;
}

// Seconds of this pass's drafting, as is usual.
double AutoPolicy::usual_drafting(std::span<const Decoding> requests) const {
  double seconds = 0, passes = 0;
  for (const Decoding& request : requests) {
    const Memory& memory = memory_of(request);
    if (memory.way != kPlain) seconds += cheap_.value();
    if (memory.way == kAll) passes = std::max(passes, memory.ways[kAll].passes);
  }
  return seconds + passes * draft_pass_.value();
}

void AutoPolicy::trim(std::span<Decoding> requests, int prompt_rows) {
  if (requests.empty()) return;
  offer(requests);
  shape_ = roots(requests);
  const double alone = costs_.seconds(shape_);
  shape_.rows += prompt_rows * costs_.prompt_row();
  // Prompts are read whatever is guessed: what they add to the pass is no reason to guess more beside them.
  const double without = costs_.seconds(shape_), prompts = without - alone;
  const double spent = usual_drafting(requests) - prompts;
  const std::size_t count = best_count(requests, shape_, spent);
  taken_.assign(requests.size(), 0);
  for (std::size_t i = 0; i < offers_.size(); ++i) {
    const auto r = static_cast<std::size_t>(offers_[i].request);
    if (i < count) ++taken_[r];
    if (i >= count && requests[r].by_value) continue;
    shape_.add_row(requests[r].length);
    memory_of(requests[r]).expected += offers_[i].value;
  }
  const double whole = costs_.seconds(shape_);
  int guesses = 0;
  for (std::size_t r = 0; r < requests.size(); ++r)
    guesses += requests[r].by_value ? taken_[r] : requests[r].wanted;
  double tokens = 0;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    Memory& memory = memory_of(requests[r]);
    tokens += memory.expected;
    memory.needed += kStep * (taken_[r] - memory.needed);
    memory.reach = std::max(2 + 2 * taken_[r], memory.reach * 3 / 4);
    const int kept = requests[r].by_value ? taken_[r] : requests[r].wanted;
    // Its share, and not what would be saved without it alone: where rows come in steps nobody's guesses seem
    // to cost anything beside the others', while all together do.
    memory.added = kept > 0 ? (whole - without) * kept / guesses : 0;
    requests[r].tree->keep_best(kept);
  }
  tokens_ = kRecent * tokens_ + tokens;
  seconds_ = kRecent * seconds_ + whole + spent;
}

// --- after the pass ---

// Where the target's draw is known, each guess was right or wrong, in the pass or not.
void AutoPolicy::judge_guesses(const Decoding& request, Memory& memory) {
  enum : std::uint8_t { kOff, kOn, kUnknown };
  if (memory.grown.size() < 2) return;  // nothing is forgotten while nothing is seen
  memory.calibration.next_cycle();
  calibration_.next_cycle();
  path_.assign(1, kOn);
  for (std::size_t n = 1; n < memory.grown.size(); ++n) {
    const Guess& guess = memory.grown[n];
    std::uint8_t state = path_[static_cast<std::size_t>(guess.parent)];
    if (state == kOn) {
      const auto depth = static_cast<std::size_t>(guess.depth) - 1;
      state = depth >= request.drawn.size() ? kUnknown : request.drawn[depth] == guess.token ? kOn : kOff;
    }
    path_.push_back(state);
    if (state == kUnknown) continue;
    memory.calibration.add(guess.value, state == kOn);
    calibration_.add(guess.value, state == kOn);
  }
}

void AutoPolicy::judge_ways(const Decoding& request, Memory& memory, double draft_passes) {
  for (int& passes : memory.unused) ++passes;
  memory.unused[memory.way] = 0;
  memory.behind = memory.way == kAll ? 0 : memory.behind + static_cast<int>(request.drawn.size());
  if (memory.way == kPlain) return;
  // What was expected varies less than what came, and both are right on average.
  const double tokens = 0.5 * (memory.expected + static_cast<double>(request.drawn.size()));
  const auto move = [&](Account& account, double step) {
    account.tokens += step * (tokens - account.tokens);
    account.rows += step * (memory.added - account.rows);
    account.passes += step * (draft_passes - account.passes);
  };
  Account& mine = memory.ways[memory.way];
  const double before = mine.tokens;
  move(mine, kStep);
  // A text that is easier for some drafters is easier for all.
  for (const Way way : {kCheap, kAll})
    if (way != memory.way)
      memory.ways[way].tokens = std::max(1.0, memory.ways[way].tokens + 0.5 * (mine.tokens - before));
  move(ways_[memory.way], std::max(kCommonStep, 1.0 / ++seen_[memory.way]));
}

void AutoPolicy::judge_times(std::span<const Decoding> requests, const PassTimes& times) {
  int asking = 0, guesses = 0;
  for (const Decoding& request : requests) {
    if (memory_of(request).way == kPlain) continue;
    ++asking;
    guesses += request.wanted;
  }
  if (times.draft.passes == 0 && asking > 0) {
    cheap_.add(times.drafting / asking);
    guess_.add(times.drafting / (asking + guesses));
  }
  if (times.draft.passes > 0) {
    // What the cheap drafters do not take beside it is the costly ones' too: ranking what a model says, say.
    const auto passes = static_cast<double>(times.draft.passes), rows = static_cast<double>(times.draft.rows);
    const double seconds = std::max(times.draft.seconds, times.drafting - cheap_.value() * asking);
    if (rows <= kLongPass * passes)
      draft_pass_.add(seconds / passes);
    else
      draft_row_.add((seconds - passes * draft_pass_.value()) / rows);
  }
  if (times.prompt_rows == 0) costs_.refine(shape_, times.pass);
}

void AutoPolicy::learn(std::span<const Decoding> requests, const PassTimes& times) {
  if (requests.empty()) return;
  judge_times(requests, times);
  credit_ += kProbing * (times.pass + times.drafting);
  const double plain = costs_.seconds(roots(requests)) / static_cast<double>(requests.size());
  for (const Decoding& request : requests) {
    Memory& memory = memory_of(request);
    if (request.drawn.empty()) continue;
    judge_guesses(request, memory);
    judge_ways(request, memory, memory.way == kAll ? static_cast<double>(times.draft.passes) : 0);
    if (!request.probe) continue;
    const double seconds = plain + memory.added + (times.drafting / static_cast<double>(requests.size()));
    credit_ -= std::max(0.0, seconds - static_cast<double>(request.drawn.size()) * seconds_ / tokens_);
  }
}

}  // namespace coppice::core
