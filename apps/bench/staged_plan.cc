#include "bench/staged_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "bench/prompts.h"

namespace coppice::app {
namespace {

constexpr int kChain = 8;  // guesses in a row whose agreement is counted
constexpr int kTreeSizes[] = {4, 8, 16, 64};

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Planner {
 public:
  Planner(const StagedWish& wish, const StagedConfig& config, const Model& model, int context)
      : wish_(wish), config_(config), model_(model), context_(context) {}

  Result<StagedPlan> plan() {
    if (Status known = check_names(); !known) return tl::unexpected(known.error());
    for (const Mode& mode : config_.modes) {
      if (!mode.missing.empty()) plan_.left_out.emplace_back(mode.name, mode.missing.front());
    }
    auto prompts = read_prompts(wish_.humaneval, wish_.prompts);
    if (!prompts) return tl::unexpected(prompts.error());
    for (Status done : {main(*prompts), trees(*prompts), sweeps(*prompts)}) {
      if (!done) return tl::unexpected(done.error());
    }
    return std::move(plan_);
  }

 private:
  Status check_names() const {
    const auto check = [](const char* option, const std::vector<std::string>& names,
                          const std::vector<std::string>& known) -> Status {
      for (const std::string& name : names) {
        if (wanted(known, name)) continue;
        std::string there;
        for (const std::string& k : known) there += (there.empty() ? "" : ", ") + k;
        return fail(fmt::format("{} {}: there is {}", option, name, there));
      }
      return {};
    };
    std::vector<std::string> modes;
    for (const Mode& mode : config_.modes) modes.push_back(mode.name);
    for (Status right :
         {check("--forms", wish_.forms, {"chat", "raw"}),
          check("--samplings", wish_.samplings, {"greedy", "top-k"}),
          check("--parts", wish_.parts, {"main", "trees", "sweeps"}), check("--modes", wish_.modes, modes)}) {
      if (!right) return right;
    }
    for (const std::string& name : wish_.modes) {
      const Mode& mode = *config_.find(name);
      if (!mode.missing.empty())
        return fail(fmt::format("--modes {}: there is no file {}", name, mode.missing.front()));
    }
    return {};
  }

  using Contenders = const std::vector<Contender>*;
  Contenders keep(std::vector<Contender> contenders) {
    contenders.insert(contenders.begin(), plain_contender());
    plan_.lists.push_back(std::move(contenders));
    return &plan_.lists.back();
  }

  Status add(const std::string& group, const TaskPrompt& prompt, const std::string& sampling,
             Contenders contenders, bool painted = false) {
    StagedWork work{group, sampling, prompt, contenders, 1, painted};
    if (group == "main") work.rounds = wish_.rounds;
    plan_.works.push_back(std::move(work));
    return {};
  }

  // In the order of prompts, so that what a stopped run has is a fair part of everything.
  template <class Each>
  Status each_prompt(std::span<const NamedPrompt> prompts, const std::string& set,
                     const std::vector<std::string>& forms, Each each) {
    std::uint32_t number = 0;
    for (const NamedPrompt& prompt : prompts) {
      for (const std::string& form : forms) {
        const bool wrapped = set == "humaneval" && form == "chat" && !wish_.instruction.empty();
        std::string text = prompt.text;
        if (const auto hole = wish_.instruction.find("{}"); wrapped)
          text = hole == std::string::npos
                     ? wish_.instruction + text
                     : wish_.instruction.substr(0, hole) + text + wish_.instruction.substr(hole + 2);
        auto made = task_prompt(model_, {set, form, prompt.name, text}, context_);
        if (!made) return tl::unexpected(made.error());
        made->number = number;
        for (const std::string& sampling : wish_.samplings) {
          if (Status done = each(*made, sampling); !done) return done;
        }
      }
      ++number;
    }
    return {};
  }

  Status main(std::span<const NamedPrompt> prompts) {
    if (!wanted(wish_.parts, "main")) return {};
    std::map<std::string, Contenders> lists;
    for (const std::string& sampling : wish_.samplings) {
      std::vector<Contender> all;
      for (const Mode& mode : config_.modes) {
        const bool asked = wish_.modes.empty() ? mode.missing.empty() : wanted(wish_.modes, mode.name);
        if (asked) all.push_back(contender_of(mode, sampling));
      }
      lists[sampling] = keep(std::move(all));
    }
    return each_prompt(prompts, "humaneval", wish_.forms, [&](const TaskPrompt& p, const std::string& s) {
      return add("main", p, s, lists[s], p.number < static_cast<std::uint32_t>(wish_.texts));
    });
  }

  // Trees of fixed sizes, and chains whose every place tells whether the first guess was right.
  Status trees(std::span<const NamedPrompt> prompts) {
    if (!wanted(wish_.parts, "trees")) return {};
    std::map<std::string, Contenders> lists;
    for (const std::string& sampling : wish_.samplings) {
      std::vector<Contender> all;
      std::vector<std::string> names = config_.alone;
      names.insert(names.begin(), config_.mixed);
      for (const std::string& name : names) {
        const Mode& mode = *config_.find(name);
        if (!mode.missing.empty()) continue;
        for (const int nodes : kTreeSizes) {
          if (name != config_.mixed) break;
          all.push_back(
              {fmt::format("{} nodes", nodes), mode.drafters, mode.prior, {nodes, 16, 16, 0.0f, 0.0f}});
        }
        all.push_back({name + ", agreement", mode.drafters, mode.prior, {kChain, kChain, 1, 0.0f, 0.0f}});
      }
      lists[sampling] = keep(std::move(all));
    }
    const auto each = [&](const TaskPrompt& p, const std::string& s) {
      return lists[s]->size() > 1 ? add("trees", p, s, lists[s]) : Status();
    };
    if (Status done = each_prompt(prompts, "humaneval", {"chat"}, each); !done) return done;
    if (wish_.data.empty()) return {};
    auto spec = read_prompts(wish_.data + "/spec_bench_dev.jsonl", wish_.prompts);
    if (!spec) return tl::unexpected(spec.error());
    return each_prompt(*spec, "spec-bench", {"chat"}, each);
  }

  Status sweep(std::span<const NamedPrompt> prompts, const std::string& axis,
               const std::function<std::vector<Contender>(const std::string&)>& make) {
    std::map<std::string, Contenders> lists;
    for (const std::string& sampling : wish_.samplings) {
      std::vector<Contender> all = make(sampling);
      if (all.empty()) return {};
      lists[sampling] = keep(std::move(all));
    }
    return each_prompt(prompts, "humaneval", {"chat"}, [&](const TaskPrompt& p, const std::string& s) {
      return add("sweep " + axis, p, s, lists[s]);
    });
  }

  Status sweeps(std::span<const NamedPrompt> all) {
    const Mode& mode = *config_.find(config_.mixed);
    if (!wanted(wish_.parts, "sweeps") || !mode.missing.empty()) return {};
    std::vector<NamedPrompt> prompts;
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(wish_.sweep_prompts), all.size());
    for (std::size_t i = 0; i < n; ++i) prompts.push_back(all[i * all.size() / n]);
    const auto values = [&](int DraftBudget::*field, std::vector<int> list) {
      return [&mode, field, list](const std::string& sampling) {
        std::vector<Contender> contenders;
        for (const int value : list) {
          Contender contender = contender_of(mode, sampling);
          contender.name = std::to_string(value);
          contender.budget.*field = value;
          contenders.push_back(std::move(contender));
        }
        return contenders;
      };
    };
    const auto sizes = [&](const std::string& sampling) {
      std::vector<Contender> contenders;
      for (const Mode& size : config_.draft_sizes) {
        if (size.missing.empty()) contenders.push_back(contender_of(size, sampling));
      }
      return contenders;
    };
    for (Status done : {sweep(prompts, "nodes", values(&DraftBudget::nodes, {1, 2, 4, 6, 8, 12, 16, 32, 64})),
                        sweep(prompts, "depth", values(&DraftBudget::depth, {1, 2, 3, 4, 6, 8, 16})),
                        sweep(prompts, "width", values(&DraftBudget::width, {1, 2, 3, 4, 8, 16})),
                        sweep(prompts, "draft size", sizes)}) {
      if (!done) return done;
    }
    return {};
  }

  const StagedWish& wish_;
  const StagedConfig& config_;
  const Model& model_;
  int context_;
  StagedPlan plan_;
};

}  // namespace

std::string StagedWork::key() const {
  return fmt::format("{}|{}|{}|{}|{}", group, prompt.set, prompt.form, sampling, prompt.name);
}

double StagedWork::weight() const { return 1 + static_cast<double>(contenders->size()) * rounds; }

Result<StagedPlan> plan_staged(const StagedWish& wish, const StagedConfig& config, const Model& model,
                               int context) {
  return Planner(wish, config, model, context).plan();
}

}  // namespace coppice::app
