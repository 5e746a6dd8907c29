// What people do with model files besides generating: look, measure, count, cut.
#pragma once

#include <coppice/error.h>
#include <coppice/model.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace coppice {

// A GGUF file as JSON text: version, keys (long arrays shortened), tensors with format, shape and offset.
Result<std::string> inspect(const std::string& path);

// 32 hexadecimal digits by which a report says which file it is about. No cryptographic hash.
Result<std::string> file_hash(const std::string& path);

// CPU, instruction sets (compiled in, usable, chosen), cores, memory, as JSON text.
std::string system_info();
std::uint64_t free_memory();  // bytes that this process could still get now

struct FoundModel {
  std::string path, name, architecture;
  std::uint64_t bytes = 0;
};
// GGUF files in the usual caches and folders: ours, the hub's, Ollama's, LM Studio's, llama.cpp's, ~/models,
// here.
std::vector<FoundModel> find_models();

struct PerplexityOptions {
  int context = 512;  // chunk length; the second half of each chunk is scored
  int chunks = 0;     // 0: all
  std::function<void(int done, int all, double perplexity)> progress;
};
struct Perplexity {
  double perplexity = 0, standard_error = 0;
  std::int64_t tokens = 0;  // scored
  int chunks = 0;
};
// As llama.cpp computes it: non-overlapping chunks, the token after each position of the second half.
Result<Perplexity> perplexity(const Model& model, std::span<const Token> tokens,
                              const PerplexityOptions& options);

// Logits of every position into `out`, [tokens, vocab]: what the model says of the next token behind each.
// Cache as given ("f32", "f16", "q8_0").
Status read_logits(const Model& model, std::span<const Token> tokens, std::span<float> out,
                   const std::string& cache = "f32");
// The same as float32 .npy.
Status write_logits(const Model& model, std::span<const Token> tokens, const std::string& path,
                    const std::string& cache = "f32");
// What a draft head (a file of architecture eagle3) says along a text, as float32 .npy
// [(tokens - steps) * steps, vocab]: at each position first from the target's states, then steps - 1 times
// from its own, fed the text's tokens. Tokens it does not know are at -infinity.
Status write_head_logits(const Model& model, const std::string& head, std::span<const Token> tokens,
                         int steps, const std::string& path, const std::string& cache = "f32");
// Every matmul of one pass into a folder: NNN_<tensor>.in.npy (f32), .codes.npy (int8) and .scales.npy (f32)
// where the weights are quantised, .out.npy (f32).
Status write_layers(const Model& model, std::span<const Token> tokens, const std::string& folder);

// How much each block of a model matters on a text: which of them the drafter `self` may leave out.
struct BlockReport {
  std::vector<double> influence;  // of each block: 1 - cosine of the residual stream before and after it
  // Blocks in the order in which they are missed least, each with the share of positions at which the model
  // without it and those before it still has the same first choice.
  struct Removal {
    int block = 0;
    double agreement = 0;
  };
  std::vector<Removal> removals;
};
struct BlockOptions {
  int removals = 0;                      // to find; each tries all blocks that are left
  std::function<bool(double)> progress;  // fraction done; false stops, with those found so far
};
// An empty text: the short built-in one.
Result<BlockReport> measure_blocks(const Model& model, std::span<const Token> tokens,
                                   const BlockOptions& options);

struct NgramBuildOptions {
  // .txt (tokenised), .jsonl with "ids" (and "start") or "text", .bin (int32), or a corpus folder
  std::vector<std::string> inputs;
  std::string output;
  int order = 5;               // longest context, in tokens
  std::vector<int> min_count;  // per context length; continuations seen less often are dropped
  int max_continuations = 0;   // per context, 0: all
  std::function<void(std::uint64_t tokens)> progress;
};
struct NgramBuildReport {
  std::uint64_t texts = 0, tokens = 0, bytes = 0;
};
Result<NgramBuildReport> build_ngram(const Tokenizer& tokenizer, const NgramBuildOptions& options);

struct SliceOptions {
  std::string input, output;
  int layers = 0;         // keep the first n (0: see below)
  std::vector<int> keep;  // or exactly these
  int drop = 0;           // or drop the n least important, measured on `text`
  std::string
      text;  // text or token ids for the measurement and the vocabulary; an .ngram file for the vocabulary
  int vocabulary = 0;  // keep the n most used tokens in the head; 0: all
  std::function<void(double)> progress;
};
struct SliceReport {
  std::vector<int> kept;
  std::vector<double> importance;  // per layer, if measured: 1 - cosine of its input and output
  int vocabulary = 0;
  std::uint64_t bytes = 0;
};
Result<SliceReport> slice(const SliceOptions& options);

// A model with random weights and a vocabulary of 256 bytes, 3 control tokens and merges, on which generate
// and chat run: what it says is nonsense, and always the same. For measuring a shape without a download, and
// for tests. The same fields give the same bytes on every machine.
struct RandomModelOptions {
  std::string output;
  std::string architecture = "llama";  // or another that coppice runs; a wrong one is refused with the list
  std::uint64_t seed = 1;
  int vocab = 320;  // at least 260
  int hidden = 64;  // widths are multiples of 32 (of the block, where a format's is longer)
  int layers = 2;
  int heads = 4;
  int kv_heads = 0;      // 0: as many as heads
  int head_dim = 0;      // 0: hidden / heads
  int feed_forward = 0;  // 0: four times hidden
  int context_length = 2048;
  int window = 0;        // positions of layers with a sliding window; 0: the file names none
  int experts = 0;       // of each layer; 0: none, or 4 where the architecture must have some
  int experts_used = 2;  // by a token
  std::vector<std::string> formats = {"Q4_0"};  // of the blocks' matrices, in turn
  std::string embedding_format = "Q8_0";        // of the embedding and the head
  bool tied_head = true;                        // the embedding is the head
  // Not empty: a slimmable draft (docs/file-formats.md) of these width factors, rising; hidden and
  // feed_forward are the last one's. exit_layer > 0: with an early exit behind so many blocks.
  std::vector<float> slim;
  int exit_layer = 0;
  float exit_factor = 0;                 // one of `slim`; 0: the first
  int threads = 0;                       // 0: what this process may use; they change nothing
  std::function<bool(double)> progress;  // fraction written; false stops
};
struct RandomModelReport {
  std::uint64_t parameters = 0, bytes = 0;
};
// Needs a few megabytes of memory, whatever the shape. Errors name the field; no half-written file is left.
Result<RandomModelReport> write_random_model(const RandomModelOptions& options);

// A draft head (EAGLE-3) with random weights for a target. It guesses nothing: for measuring what a head
// costs, and for tests.
struct RandomHeadOptions {
  std::string output;
  std::string target;  // a GGUF file
  std::uint64_t seed = 1;
  int vocabulary = 0;                           // tokens it may guess; 0: all
  std::vector<std::string> formats = {"Q4_1"};  // of its matrices, in turn
  std::vector<int> feature_layers;  // it reads; empty: a third, two thirds and all of the target's
  bool standardised = false;        // with a mean and a scale of each feature
  bool norm_before_residual = false;
  bool own_embedding = false;  // instead of the target's
};
Status write_random_head(const RandomHeadOptions& options);

// Names, usage and summary of the drafters there are.
struct DrafterHelp {
  std::string name, usage, summary;
};
std::vector<DrafterHelp> drafter_help();
// Whether an expression of built-in drafters is right as far as that can be said without a model: its names,
// arguments and values, and with `files` that those it names can be read. The error is the one that
// Engine::make would give.
Status check_drafters(const std::string& expression, bool files = true);
// The same of the files that a policy names, and of what was fitted for one of these drafters where the
// policy begins with it (docs/policies.md); the rest is for Speculation::validate().
Status check_policy_files(const std::string& policy, const std::string& drafters = "none");

}  // namespace coppice
