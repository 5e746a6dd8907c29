// One command of the program. To add one: a file with its register function, a row in main.cc.
#pragma once

#include <coppice/error.h>

#include <CLI/CLI.hpp>
#include <functional>

namespace coppice::app {

// Exit codes.
inline constexpr int kOk = 0;
inline constexpr int kDiffers = 1;        // a comparison that should be equal was not
inline constexpr int kBadInput = 2;       // file, prompt or option: one sentence says which
inline constexpr int kInterrupted = 130;  // Ctrl-C, as shells have it

using Run = std::function<Result<int>()>;
// Sets what main() runs when this command is the one that was named.
using Choose = std::function<void(Run)>;

void add_generate(CLI::App& app, const Choose& choose);
void add_chat(CLI::App& app, const Choose& choose);
void add_bench(CLI::App& app, const Choose& choose);
void add_corpus(CLI::App& app, const Choose& choose);
void add_eval(CLI::App& app, const Choose& choose);
void add_tokenize(CLI::App& app, const Choose& choose);
void add_inspect(CLI::App& app, const Choose& choose);
void add_info(CLI::App& app, const Choose& choose);
void add_models(CLI::App& app, const Choose& choose);
void add_ngram(CLI::App& app, const Choose& choose);
void add_slice(CLI::App& app, const Choose& choose);
void add_random_model(CLI::App& app, const Choose& choose);
void add_train(CLI::App& app, const Choose& choose);
void add_quantize(CLI::App& app, const Choose& choose);
void add_importance(CLI::App& app, const Choose& choose);
void add_serve(CLI::App& app, const Choose& choose);
void add_completions(CLI::App& app, const Choose& choose);
void add_man(CLI::App& app, const Choose& choose);  // after all others, whose pages it offers

}  // namespace coppice::app
