// A corpus as people look at it.
#include <coppice/corpus.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "api/corpus_jobs.h"
#include "base/check.h"
#include "corpus/corpus_folder.h"
#include "quant/formats.h"

namespace coppice {
namespace {

using Json = nlohmann::ordered_json;

struct Count {
  std::uint64_t texts = 0, tokens = 0;
  void add(const core::CorpusRecordView& text) {
    ++texts;
    tokens += text.ids.size() - static_cast<std::size_t>(text.start);
  }
  Json json() const { return {{"texts", texts}, {"tokens", tokens}}; }
};

std::string kind_name(const core::CorpusDescription& description, int kind) {
  const bool known = kind < static_cast<int>(description.kinds.size());
  return known ? description.kinds[static_cast<std::size_t>(kind)] : fmt::format("kind {}", kind);
}

float logprob_of(const core::CorpusRecordView& text, int position) {
  if (text.top_k == 0) return std::numeric_limits<float>::quiet_NaN();
  const auto tokens = text.top_tokens(position);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] == text.ids[static_cast<std::size_t>(position)])
      return core::f16_to_f32(text.top_logprobs(position)[i]);
  return std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

Result<std::string> describe_corpus(const std::string& folder) {
  COPPICE_TRY(const core::CorpusDescription description, core::read_corpus_description(folder));
  COPPICE_TRY(const std::vector<std::string> shards, core::corpus_shards(folder));
  Count all;
  std::uint64_t prompt_tokens = 0, ended = 0, repeated = 0, bytes = 0;
  std::map<std::string, Count> kinds, temperatures;
  for (const std::string& path : shards) {
    COPPICE_TRY(const core::CorpusShard shard, core::CorpusShard::open(path));
    bytes += shard.bytes();
    for (int i = 0; i < shard.texts(); ++i) {
      const core::CorpusRecordView text = shard.text(i);
      all.add(text);
      kinds[kind_name(description, text.kind)].add(text);
      temperatures[fmt::format("{}", text.temperature)].add(text);
      prompt_tokens += static_cast<std::uint64_t>(text.start);
      ended += (text.flags & core::kEndedByItself) != 0 ? 1 : 0;
      repeated += (text.flags & core::kCutRepetition) != 0 ? 1 : 0;
    }
  }
  Json out = Json::parse(description.to_text());
  out["shards"] = shards.size();
  out["bytes"] = bytes;
  out["texts"] = all.texts;
  out["tokens"] = all.tokens;
  out["prompt_tokens"] = prompt_tokens;
  out["ended_by_themselves"] = ended;
  out["cut_repetition"] = repeated;
  for (const auto& [name, count] : kinds) out["by_kind"][name] = count.json();
  for (const auto& [name, count] : temperatures) out["by_temperature"][name] = count.json();
  return out.dump(2);
}

Result<CorpusSample> corpus_sample(const std::string& folder, std::uint64_t index) {
  COPPICE_TRY(const core::CorpusDescription description, core::read_corpus_description(folder));
  COPPICE_TRY(const std::vector<std::string> shards, core::corpus_shards(folder));
  std::uint64_t first = 0;
  for (const std::string& path : shards) {
    COPPICE_TRY(const core::CorpusShard shard, core::CorpusShard::open(path));
    const auto texts = static_cast<std::uint64_t>(shard.texts());
    if (index >= first + texts) {
      first += texts;
      continue;
    }
    const core::CorpusRecordView text = shard.text(static_cast<int>(index - first));
    CorpusSample sample;
    sample.job = text.job;
    const Json seed = description.settings.value("seed", Json());
    sample.seed = corpus_seed(seed.is_number_unsigned() ? seed.get<std::uint64_t>() : 0, text.job);
    sample.kind = kind_name(description, text.kind);
    sample.temperature = text.temperature;
    const auto start = static_cast<std::size_t>(text.start);
    sample.prompt.assign(text.ids.begin(), text.ids.begin() + text.start);
    sample.generated.assign(text.ids.begin() + text.start, text.ids.end());
    for (std::size_t i = start; i < text.ids.size(); ++i)
      sample.logprobs.push_back(logprob_of(text, static_cast<int>(i)));
    return sample;
  }
  return fail(fmt::format("{}: has {} texts; there is no text {}", folder, first, index));
}

}  // namespace coppice
