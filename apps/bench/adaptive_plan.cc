#include "bench/adaptive_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bench/prompts.h"

namespace coppice::app {
namespace {

bool wanted(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Planner {
 public:
  Planner(const AdaptiveWish& wish, const AdaptiveConfig& config, const Model& model, int context)
      : wish_(wish), config_(config), model_(model), context_(context) {}

  Result<AdaptivePlan> plan() {
    if (Status known = check_names(); !known) return tl::unexpected(known.error());
    for (const auto* methods : {&config_.methods, &config_.fixed, &config_.ablations}) {
      for (const AdaptiveMethod& method : *methods) {
        if (!method.left_out.empty()) plan_.left_out.emplace_back(method.mode.name, method.left_out);
      }
    }
    if (Status done = read(); !done) return tl::unexpected(done.error());
    if (wanted(wish_.parts, "tasks") || wanted(wish_.parts, "categories")) main();
    if (wanted(wish_.parts, "lengths")) lengths();
    if (wanted(wish_.parts, "ablations")) ablations();
    return std::move(plan_);
  }

 private:
  using Contenders = std::map<std::string, const std::vector<Contender>*>;  // by way of sampling

  Status check_names() const {
    const std::string_view parts[] = {"tasks", "categories", "lengths", "ablations"};
    for (const std::string& part : wish_.parts) {
      if (std::find(std::begin(parts), std::end(parts), part) == std::end(parts))
        return fail(fmt::format("--parts {}: there is tasks, categories, lengths, ablations", part));
    }
    for (const std::string& sampling : wish_.samplings) {
      if (auto known = bench_sampling(sampling, 0, 1); !known) return tl::unexpected(known.error());
    }
    for (const std::string& name : wish_.methods) {
      const AdaptiveMethod* method = config_.find(name);
      if (method == nullptr) return fail(fmt::format("--methods {}: {} has none", name, config_.path));
      if (!method->left_out.empty()) return fail(fmt::format("--methods {}: {}", name, method->left_out));
    }
    return {};
  }

  bool measured(const AdaptiveMethod& method) const {
    return wish_.methods.empty() ? method.left_out.empty() : wanted(wish_.methods, method.mode.name);
  }

  Contenders keep(const std::vector<const AdaptiveMethod*>& methods) {
    Contenders lists;
    for (const std::string& sampling : wish_.samplings) {
      std::vector<Contender> list{plain_contender()};
      for (const AdaptiveMethod* method : methods) list.push_back(contender_of(method->mode, sampling));
      plan_.lists.push_back(std::move(list));
      lists[sampling] = &plan_.lists.back();
    }
    return lists;
  }

  std::vector<const AdaptiveMethod*> methods() const {
    std::vector<const AdaptiveMethod*> all;
    for (const AdaptiveMethod& method : config_.methods) {
      if (measured(method)) all.push_back(&method);
    }
    return all;
  }

  // One prompt of each kind after the other, so that what a stopped run has is a fair part of everything.
  Status read() {
    const bool everything = wanted(wish_.parts, "categories");
    auto lists = read_tasks(wish_.files, model_, context_, wish_.prompts, everything);
    if (!lists) return tl::unexpected(lists.error());
    std::size_t longest = 0;
    for (const TaskList& list : *lists) longest = std::max(longest, list.prompts.size());
    for (std::size_t i = 0; i < longest; ++i) {
      for (TaskList& list : *lists) {
        if (i >= list.prompts.size()) continue;
        list.prompts[i].number = static_cast<std::uint32_t>(plan_.prompts.size());
        plan_.prompts.push_back(std::move(list.prompts[i]));
        painted_.push_back(i < static_cast<std::size_t>(wish_.texts));
      }
    }
    return {};
  }

  void add(const std::string& group, const TaskPrompt& prompt, const Contenders& lists,
           const AdaptiveWork& like) {
    for (const std::string& sampling : wish_.samplings) {
      AdaptiveWork work = like;
      work.group = group;
      work.sampling = sampling;
      work.prompt = &prompt;
      work.contenders = lists.at(sampling);
      plan_.works.push_back(std::move(work));
    }
  }

  // A round is over all prompts: by the time an engine sees a prompt again, its drafts have read others.
  void main() {
    std::vector<const AdaptiveMethod*> all = methods();
    const Contenders tasks = keep(all);
    for (const AdaptiveMethod& method : config_.fixed) {
      if (method.left_out.empty() && wish_.methods.empty()) all.push_back(&method);
    }
    const Contenders categories = wanted(wish_.parts, "categories") ? keep(all) : tasks;
    for (int round = 0; round < wish_.rounds; ++round) {
      for (const TaskPrompt& prompt : plan_.prompts) {
        const bool spec = prompt.set == kSpecBench;
        if (!spec && !wanted(wish_.parts, "tasks")) continue;
        AdaptiveWork like;
        like.round = round;
        like.tokens = wish_.tokens;
        like.painted = round == 0 && painted_[prompt.number];
        add("main", prompt, spec ? categories : tasks, like);
      }
    }
  }

  void lengths() {
    const Contenders lists = keep(methods());
    std::map<std::string, int> seen;
    for (const TaskPrompt& prompt : plan_.prompts) {
      if (!is_chat(prompt.category) || seen[prompt.category]++ >= wish_.length_prompts) continue;
      AdaptiveWork like;
      like.tokens = wish_.length_tokens;
      add("lengths", prompt, lists, like);
    }
  }

  // Beside the methods they are of.
  void ablations() {
    std::vector<const AdaptiveMethod*> all;
    for (const AdaptiveMethod& ablation : config_.ablations) {
      const AdaptiveMethod* of = config_.find(ablation.of);
      if (!ablation.left_out.empty() || !measured(*of)) continue;
      if (std::find(all.begin(), all.end(), of) == all.end()) all.push_back(of);
      all.push_back(&ablation);
    }
    if (all.empty()) return;
    const Contenders lists = keep(all);
    std::map<std::string, std::vector<const TaskPrompt*>> tasks;
    for (const TaskPrompt& prompt : plan_.prompts) {
      const bool spec = prompt.set == kSpecBench;
      if (!spec || is_chat(prompt.category) || is_summary(prompt.category))
        tasks[spec ? (is_chat(prompt.category) ? "chat" : "summary") : prompt.set].push_back(&prompt);
    }
    for (const auto& [task, prompts] : tasks) {
      for (const TaskPrompt* prompt : spread(prompts, wish_.ablation_prompts)) {
        AdaptiveWork like;
        like.tokens = wish_.tokens;
        add("ablations", *prompt, lists, like);
      }
    }
  }

  const AdaptiveWish& wish_;
  const AdaptiveConfig& config_;
  const Model& model_;
  int context_;
  AdaptivePlan plan_;
  std::vector<bool> painted_;  // by the prompt's number
};

}  // namespace

std::string AdaptiveWork::key() const {
  return fmt::format("{}|{}|{}|{}|{}|{}", group, prompt->set, prompt->form, sampling, prompt->name, round);
}

double AdaptiveWork::weight() const {
  const auto contenders_count = static_cast<double>(contenders->size());
  return (1 + contenders_count * (painted ? 2 : 1)) * tokens / 128;
}

Result<AdaptivePlan> plan_adaptive(const AdaptiveWish& wish, const AdaptiveConfig& config, const Model& model,
                                   int context) {
  return Planner(wish, config, model, context).plan();
}

}  // namespace coppice::app
