// Measuring: what kernels and passes cost beside what this machine can do at best. What is compared is timed
// in turn, round by round, so that a machine whose speed drifts favours nobody; shares and ratios are made
// within a round and the median over the rounds is given. docs/measuring.md tells how the figures are meant
// to be read.
#pragma once

#include <coppice/error.h>
#include <coppice/model.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

// Over the rounds: the median, and the quartiles.
struct Spread {
  double median = 0, low = 0, high = 0;
};

// Hears the fraction done and what is being measured; false stops (the measurement then is an error).
using BenchProgress = std::function<bool(double fraction, std::string_view what)>;

// What all threads together did with the instruction set at hand.
struct MachineSpeed {
  std::string isa;
  int threads = 0;
  Spread int8_peak;  // multiply-adds a second, in a loop that touches no memory
  Spread f32_peak;
};

struct KernelBenchOptions {
  // The shape whose matrices are made, at random: that of SmolLM2-135M. The head is left out.
  int hidden = 576, feed_forward = 1536, heads = 9, kv_heads = 3, head_dim = 64, layers = 30;
  int vocab = 49152;               // of noise and argmax
  std::vector<std::string> kinds;  // of packed weights: q4, q4_offset, q8, q4_super, f16, ...; empty: all
  std::vector<int> rows = {1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 512};
  std::vector<int> positions = {256, 2048};  // of attention
  int repeats = 7;
  int threads = 0;  // 0: what this process may use
  std::string isa;  // as in ModelOptions
  BenchProgress progress;
};

struct KernelTiming {
  std::string kernel;   // "matmul", "attention", "rms_norm", ...
  std::string variant;  // kind of weights, type of cache, or empty
  int rows = 1;         // of the pass
  int count = 0;        // positions of attention, numbers of the others
  Spread seconds;  // matmul, attention: all matrices or layers, on all threads; others: one call, one thread
  double bytes = 0;  // that have to be read, each once
  double multiply_adds = 0;
  Spread of_read;  // the time of a pure read loop over the same bytes, divided by this time
  Spread of_peak;  // multiply-adds a second, divided by the int8 (quantised) or f32 peak; 0: not counted
  double limit() const { return of_read.median > of_peak.median ? of_read.median : of_peak.median; }
};

struct KernelReport {
  MachineSpeed machine;
  std::vector<KernelTiming> timings;
};
Result<KernelReport> bench_kernels(const KernelBenchOptions& options);

struct CostOptions {
  std::vector<int> rows = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64};  // 1 is always measured
  std::vector<int> contexts = {128, 1024};  // committed positions that the rows see
  int prefill = 512;                        // tokens of a prompt; 0: none is measured
  int chunk = 128;                          // rows of one of its passes
  std::string cache = "f16";
  int repeats = 7;
  BenchProgress progress;
};

// Where a pass spends its time, as the calling thread sees it: from one barrier to the next, waiting for the
// other threads included. Means over passes of their own, which are a little slower than those that are timed
// whole.
struct StageTime {
  std::string name;  // "attention", "head", ...
  double seconds = 0;
};

// A pass as the engine makes it for a tree: the root's row is committed, the others lie in scratch slots, all
// want logits. Drawing is not part of it.
struct PassCost {
  int rows = 0, context = 0;
  Spread seconds;
  Spread ratio;    // C(n) / C(1) at this context
  Spread of_read;  // the read loop over the weights, divided by this
  Spread of_peak;  // the time of its matmuls at peak, divided by this
  std::uint64_t kv_bytes = 0;
  std::vector<StageTime> stages;
};

struct CostReport {
  MachineSpeed machine;
  std::string cache;
  std::uint64_t weight_bytes = 0;  // read by a pass
  double multiply_adds = 0;        // of the matmuls, one row with logits
  Spread read_seconds;             // the pure read loop over the packed weights
  std::vector<PassCost> passes;    // contexts ascending, rows ascending
  int prefill = 0, chunk = 0;
  Spread prefill_seconds;
  Spread prefill_of_peak;              // the whole of it
  double prefill_matmuls_of_peak = 0;  // the stages with matmuls alone
  std::vector<StageTime> prefill_stages;
};
Result<CostReport> bench_cost(const Model& model, const CostOptions& options);

struct LoadOptions {
  int threads = 0;
  std::string isa;
  std::string cache = "f16";
  int context = 0;            // of the engine; 0: its default
  bool packed_cache = false;  // as in ModelOptions: what is there when the first load begins is used
  int repeats = 5;            // loads; the memory is that of the first
  BenchProgress progress;
};

struct LoadReport {
  std::string path;
  int rounds = 0, from_packed_cache = 0;  // loads, and those whose weights were mapped from the packed cache
  Spread open, tokenizer, weights;        // parts of load, which may overlap
  Spread load;                            // Model::load()
  Spread engine;                          // Engine::make()
  Spread first_token;                     // prompt of one token to the first token of the answer
  Spread total;                           // from nothing to the first token
  std::uint64_t file_bytes = 0, weight_bytes = 0;
  std::uint64_t kv_bytes = 0;    // of the cache, when it is full
  std::uint64_t peak_bytes = 0;  // the most memory this process ever had, up to the first token
};
// The file is read once before, so that it lies in the page cache. To be called in a fresh process: memory
// that was used before counts.
Result<LoadReport> bench_load(const std::string& path, const LoadOptions& options);

// What speculation would bring models of other shapes, if their drafts were taken as recorded ones were: the
// passes are real and cost what they cost, which guesses are taken follows a recording. Every pass sees the
// same context. Cheap drafters, the mixer and the draws are not in it.
struct ReplayCycle {
  int tokens = 1;        // that the cycle brought
  int guesses = 0;       // of the tree; the target's pass has one row more
  int draft_passes = 0;  // before it
  int draft_rows = 0;    // of them all
};
struct ReplayOptions {
  std::vector<std::vector<ReplayCycle>> answers;
  std::string draft;  // a file
  int context = 256;
  std::string cache = "f16";
  BenchProgress progress;
};
struct ReplayReport {
  ModelInfo draft;  // path, parameters and bytes alone
  std::uint64_t tokens = 0, cycles = 0, draft_passes = 0;
  double plain_seconds = 0, seconds = 0, draft_seconds = 0;
  Spread speed_up;  // over passes of one row, answer by answer, each right after the other
};
Result<ReplayReport> bench_replay(const Model& target, const ReplayOptions& options);

// How much of an answer is measured. Text that repeats itself for ever is guessed easily by everybody, and
// what stands behind the function that was asked for is nobody's answer: neither should flatter a drafter.
enum class AnswerForm {
  chat,  // ends where it ends
  code,  // completes a function: ends before the first line that is not indented and stands behind one that
         // is
};
struct AnswerCut {
  std::size_t tokens = 0;  // of the answer, that count
  std::string why;         // "end of text", "function", "repeats" or "limit"
};
inline constexpr std::size_t kRepeat = 16;  // tokens of a sequence that makes a repetition
// `repeats`: a sequence of kRepeat tokens comes a third time; the answer ends where that one begins.
AnswerCut cut_answer(const Tokenizer& tokenizer, std::span<const Token> answer, AnswerForm form);

}  // namespace coppice
