#include "bench/staged_calibrate.h"

#include <fmt/core.h>

#include <algorithm>

#include "bench/prompts.h"
#include "bench/staged_measure.h"
#include "bench/staged_plan.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

constexpr int kNodes[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32};
constexpr float kPrices[] = {0.003f, 0.01f, 0.03f, 0.06f, 0.1f, 0.15f, 0.2f, 0.3f};
constexpr int kPatience = 2;  // tries in a row that are worse end a search

class Calibration {
 public:
  Calibration(const Model& model, const EngineOptions& options, const StagedConfig& config,
              const CalibrateWish& wish)
      : model_(model), options_(options), bench_(model, options), config_(config), wish_(wish) {}

  Result<ordered_json> run() {
    if (Status read = read_all(); !read) return tl::unexpected(read.error());
    std::vector<const Mode*> modes;
    for (const Mode& mode : config_.modes) {
      const bool named = std::find(wish_.modes.begin(), wish_.modes.end(), mode.name) != wish_.modes.end();
      if (mode.policy != "fixed") continue;  // others choose for themselves
      if (wish_.modes.empty() ? mode.missing.empty() : named) modes.push_back(&mode);
    }
    if (modes.empty())
      return fail(
          fmt::format("{} has no mode with the policy \"fixed\" whose files are there", config_.path));
    ordered_json text = config_.text;
    ordered_json& note = text["calibrated"];
    if (!note.is_object()) note = ordered_json::object();
    note["prompts"] = wish_.prompts;
    note["answers"] = prompts_.size();
    note["tokens"] = wish_.tokens;
    say("{:<16} {:<8} {:>6} {:>7} {:>9}\n", "", "", "nodes", "price", "speed-up");
    double at = 0;
    for (const Mode* mode : modes) {
      for (const std::string& sampling : wish_.samplings) {
        show_progress(mode->name, at++ / static_cast<double>(modes.size() * wish_.samplings.size()),
                      sampling);
        auto chosen = choose(*mode, sampling, note);
        if (!chosen) return tl::unexpected(chosen.error());
        set_budget(text, mode->name, sampling, *chosen);
      }
    }
    clear_progress();
    return text;
  }

 private:
  Status read_all() {
    auto named = read_prompts(wish_.prompts, wish_.limit);
    if (!named) return tl::unexpected(named.error());
    for (const NamedPrompt& prompt : *named) {
      const int context = options_.context > 0 ? options_.context : model_.info().context_length;
      auto made = task_prompt(model_, {"training", "chat", prompt.name, prompt.text}, context);
      if (!made) return tl::unexpected(made.error());
      made->number = static_cast<std::uint32_t>(prompts_.size());
      prompts_.push_back(std::move(*made));
    }
    return {};
  }

  // Plain seconds over this one's, all prompts together.
  Result<double> speed_up(const Mode& mode, const std::string& sampling, const DraftBudget& budget) {
    auto drawn = bench_sampling(sampling, wish_.seed, wish_.tokens);
    if (!drawn) return tl::unexpected(drawn.error());
    Contender contender = contender_of(mode, sampling);
    contender.budget = budget;
    const Contender both[] = {plain_contender(), contender};
    double plain = 0, guessed = 0;
    for (const TaskPrompt& prompt : prompts_) {
      auto record = bench_.measure(prompt, *drawn, both, 1, false);
      if (!record) return tl::unexpected(record.error());
      if (!record->contains("modes")) continue;
      const auto seconds = [&](const std::string& name) {
        return (*record)["modes"][name]["seconds"][0][0].get<double>();
      };
      plain += seconds("plain");
      guessed += seconds(mode.name);
    }
    if (guessed <= 0)
      return fail(fmt::format("{}: no answer has {} tokens; other prompts are needed", wish_.prompts,
                              kShortestAnswer));
    return plain / guessed;
  }

  // The best of `values` for one field: in their order, until kPatience in a row were worse.
  template <class Values, class Field>
  Status search(const Mode& mode, const std::string& sampling, const Values& values, Field field,
                DraftBudget& best, ordered_json& tried) {
    double most = 0;
    int worse = 0;
    DraftBudget budget = best;
    for (const auto value : values) {
      if (worse == kPatience) break;
      budget.*field = value;
      auto speed = speed_up(mode, sampling, budget);
      if (!speed) return tl::unexpected(speed.error());
      ordered_json entry = budget_json(budget);
      entry["speed_up"] = *speed;
      tried.push_back(entry);
      worse = *speed > most ? 0 : worse + 1;
      if (*speed > most) {
        most = *speed;
        best = budget;
      }
    }
    return {};
  }

  Result<DraftBudget> choose(const Mode& mode, const std::string& sampling, ordered_json& note) {
    DraftBudget best = mode.budgets.at(sampling);
    ordered_json& tried = note["tried"][mode.name][sampling];
    tried = ordered_json::array();
    if (Status done = search(mode, sampling, kNodes, &DraftBudget::nodes, best, tried); !done)
      return tl::unexpected(done.error());
    if (Status done = search(mode, sampling, kPrices, &DraftBudget::price, best, tried); !done)
      return tl::unexpected(done.error());
    double most = 0;
    for (const ordered_json& entry : tried) most = std::max(most, entry["speed_up"].get<double>());
    clear_progress();
    say("{:<16} {:<8} {:>6} {:>7} {:>8.2f}x\n", mode.name, sampling, best.nodes, best.price, most);
    flush_out();
    return best;
  }

  const Model& model_;
  EngineOptions options_;
  StagedBench bench_;
  const StagedConfig& config_;
  CalibrateWish wish_;
  std::vector<TaskPrompt> prompts_;
};

}  // namespace

Result<ordered_json> calibrate_staged(const Model& model, const EngineOptions& options,
                                      const StagedConfig& config, const CalibrateWish& wish) {
  return Calibration(model, options, config, wish).run();
}

}  // namespace coppice::app
