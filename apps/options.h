// Options that several commands share, and what they make.
#pragma once

#include <coppice/coppice.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace coppice::app {

struct ModelFlags {
  std::string path;
  int threads = 0;
  std::string isa;
  bool packed_cache = false;
  std::string chat_template_file, chat_variables, tools_file;

  void add(CLI::App& app);
  void add_machine(CLI::App& app);  // all but the model itself, which add() adds too
  // For commands that hold conversations. `tools`: with the option that names a file of tools.
  void add_chat(CLI::App& app, bool tools = true);
  bool chats() const { return !(chat_template_file + chat_variables + tools_file).empty(); }
  // The file, or the found model with the name or part of a name, that -m or $COPPICE_MODEL says; without
  // them the first of `coppice models`.
  Result<std::string> resolve() const;
  Result<ModelOptions> options() const;  // checked
  Result<Model> load() const;            // with a progress bar

 private:
  Result<ChatTemplateOptions> chat_template() const;
};

// For ranges that can be checked before there is a model.
inline constexpr int kAnyVocabulary = std::numeric_limits<int>::max();

// The library names fields ("top_k = -1: ..."); a person typed options ("--top-k = -1: ...").
Error name_the_option(const Error& error);

// What the answer must be a text of.
struct GrammarFlags {
  std::string schema;  // a file, or the schema itself
  std::string file;
  bool json_object = false;

  void add(CLI::App& app);
  Result<std::optional<Grammar>> resolve() const;  // errors name the option
};

struct SamplingFlags {
  Sampling sampling;
  GrammarFlags grammar;
  std::vector<std::string> bias;  // TOKEN=VALUE
  std::string acceptance = "keyed";

  void add(CLI::App& app);
  Result<Sampling> resolve(int vocab = kAnyVocabulary) const;  // ranges checked; errors name the option
};

struct SpeculationFlags {
  Speculation speculation;
  bool plain = false;

  // `drafters`: with the options that name drafters.
  void add(CLI::App& app, bool drafters = true);
  Result<Speculation> resolve() const;
};

struct EngineFlags {
  int context = 0;
  std::string cache = "f16";
  int chunk = 128;

  void add(CLI::App& app);
  Result<EngineOptions> resolve(const Speculation& speculation) const;
};

// A check for unsigned numbers: they are parsed by strtoull, which takes -1 for 2^64 - 1.
std::string not_negative(const std::string& text);
// The words that an option takes ("f32|f16|q8_0"), for its help, its manual page and the shells' completions.
// The command judges them.
CLI::Validator one_of(const std::string& words);
// Refuses whole numbers below `least`.
CLI::Validator at_least(int least);

// "14.2 tok/s, 31 passes, 3.10 tokens a pass, mean accepted 2.10 (lookup 61%, ngram 74%)"
std::string summary(const Stats& stats);
std::string stats_json(const Stats& stats, int indent = -1);

}  // namespace coppice::app
