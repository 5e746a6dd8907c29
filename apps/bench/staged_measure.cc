#include "bench/staged_measure.h"

#include <fmt/core.h>

namespace coppice::app {

using nlohmann::ordered_json;

Status StagedBench::prepare(const Contender& contender) {
  if (Status made = answers_.prepare(contender); !made)
    return fail(fmt::format("mode \"{}\": {}", contender.name, made.error().message));
  return {};
}

Result<ordered_json> StagedBench::measure(const TaskPrompt& prompt, const Sampling& wanted,
                                          std::span<const Contender> contenders, int rounds, bool painted) {
  auto plain = answers_.reference(prompt, wanted);
  if (!plain) return tl::unexpected(plain.error());
  const Reference& counts = **plain;
  ordered_json record = reference_json(model_, prompt, counts);
  if (counts.ids.size() < kShortestAnswer) return record;
  Sampling sampling = wanted;
  sampling.max_tokens = static_cast<int>(counts.ids.size());
  std::vector<ordered_json> modes(contenders.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t k = 0; k < contenders.size(); ++k) {
      const std::size_t who = (k + prompt.number + static_cast<std::size_t>(round)) % contenders.size();
      auto made = answers_.answer(prompt, sampling, contenders[who]);
      if (!made) return tl::unexpected(made.error());
      const Stats& stats = made->stats;
      ordered_json& mode = modes[who];
      if (round == 0) mode = counts_json(stats);
      mode["seconds"].push_back(
          {stats.decode_seconds, stats.draft_seconds, stats.verify_seconds, stats.sample_seconds});
      mode["same"] = mode.value("same", true) && same_ids(counts.ids, made->tokens);
    }
  }
  for (std::size_t who = 0; who < contenders.size(); ++who)
    record["modes"][contenders[who].name] = std::move(modes[who]);
  if (!painted) return record;
  for (const Contender& contender : contenders) {
    if (contender.budget.nodes == 0) continue;
    auto paints = answers_.paint(prompt, sampling, contender);
    if (!paints) return tl::unexpected(paints.error());
    record["painted"][contender.name] = std::move(*paints);
  }
  return record;
}

}  // namespace coppice::app
