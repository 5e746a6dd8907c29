// The folder of a corpus and what is in it already; the texts themselves are made by corpus_run.cc.
#include <coppice/corpus.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <unordered_set>

#include "api/corpus_jobs.h"
#include "api/corpus_run.h"
#include "api/impl.h"
#include "base/check.h"
#include "base/file_lock.h"
#include "base/os.h"
#include "corpus/corpus_folder.h"
#include "gguf/split.h"

namespace coppice {

double CorpusProgress::seconds_left() const {
  if (seconds <= 0) return 0;
  const auto left = [this](std::uint64_t all, std::uint64_t done, std::uint64_t run) {
    if (run == 0 || done >= all) return 0.0;
    return static_cast<double>(all - done) * seconds / static_cast<double>(run);
  };
  const double texts_left = left(all_texts, texts, run_texts);
  if (all_tokens == 0) return texts_left;
  const double tokens_left = left(all_tokens, tokens, run_tokens);
  return texts_left == 0 ? tokens_left : std::min(texts_left, tokens_left);
}

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t kMostShardBytes = std::size_t{256} << 20;  // features fill a shard sooner than tokens

Status check(const CorpusOptions& options, const ModelInfo& info) {
  const auto range = [](const char* name, std::int64_t value, std::int64_t least,
                        std::int64_t most) -> Status {
    if (value >= least && value <= most) return {};
    return fail(fmt::format("{} = {}: {} to {} are possible", name, value, least, most));
  };
  if (options.folder.empty()) return fail("folder is empty; name the folder the corpus goes into");
  if (options.prompts.empty() && options.score.empty() && options.self == 0)
    return fail("prompts, self and score are all empty; say what the texts begin with");
  COPPICE_TRY_STATUS(range("self", static_cast<std::int64_t>(options.self), 0, std::int64_t{1} << 31));
  COPPICE_TRY_STATUS(range("max_tokens", options.max_tokens, 1, 1 << 20));
  COPPICE_TRY_STATUS(range("instruction_tokens", options.instruction_tokens, 1, 1 << 20));
  COPPICE_TRY_STATUS(range("context", options.context, 32, 1 << 20));
  COPPICE_TRY_STATUS(range("slots", options.slots, 1, 1024));
  COPPICE_TRY_STATUS(range("rows", options.rows, 1, 4096));
  COPPICE_TRY_STATUS(range("shard_tokens", options.shard_tokens, 1, 1 << 30));
  COPPICE_TRY_STATUS(range("top_k", options.top_k, 0, std::min(1024, info.vocab)));
  COPPICE_TRY_STATUS(range("sampling_top_k", options.sampling_top_k, 0, 1 << 30));
  if (options.top_k % 2 != 0) return fail(fmt::format("top_k = {}: an even number is wanted", options.top_k));
  if (options.temperatures.empty()) return fail("temperatures is empty; one is needed");
  for (const CorpusTemperature& choice : options.temperatures)
    if (!(choice.temperature >= 0 && choice.temperature <= 100 && choice.share > 0 && choice.share <= 1e6f))
      return fail(fmt::format("temperatures: {} with a share of {} is not possible", choice.temperature,
                              choice.share));
  return {};
}

// What decides the texts, besides the model.
Json settings_of(const Model& model, const CorpusOptions& options, const Json& sources) {
  const core::ChatOptions& chat = model.impl().chat;
  Json conversation;  // null: the file's own template, and nothing for it to look at but the messages
  if (!chat.program.empty() || !chat.variables.empty() || !chat.tools.is_null())
    conversation = {
        {"template",
         chat.program.empty() ? "" : core::to_hex(core::hash_of(std::as_bytes(std::span(chat.program))))},
        {"variables", chat.variables},
        {"tools", chat.tools}};
  Json temperatures = Json::array();
  for (const CorpusTemperature& choice : options.temperatures)
    temperatures.push_back({{"temperature", choice.temperature}, {"share", choice.share}});
  return {{"seed", options.seed},
          {"temperatures", temperatures},
          {"sampling_top_k", options.sampling_top_k},
          {"max_tokens", options.max_tokens},
          {"instruction_tokens", options.instruction_tokens},
          {"context", options.context},
          {"prompt_files", options.prompts.size()},
          {"sources", sources},
          {"chat_template", conversation},
          {"self", options.self}};
}

// A corpus goes on only as it was begun. `old` and `now` differ in nothing but what may grow.
Status same_making(const std::string& folder, const core::CorpusDescription& old,
                   const core::CorpusDescription& now) {
  const auto other = [&](std::string_view what, const auto& before, const auto& after) {
    return fail(
        fmt::format("{} was made with {} {} and this asks for {}; name another folder, or ask for the same",
                    folder, what, before, after));
  };
  if (old.target_hash != now.target_hash)
    return fail(fmt::format("{} was made from another model ({}); name another folder", folder, old.target));
  if (old.shape.top_k != now.shape.top_k) return other("top_k", old.shape.top_k, now.shape.top_k);
  if (old.feature_layers != now.feature_layers)
    return other("features of layers", Json(old.feature_layers).dump(), Json(now.feature_layers).dump());
  for (const auto& [key, value] : now.settings.items()) {
    if (key == "self" || key == "sources" || key == "prompt_files") continue;
    const Json before = old.settings.value(key, Json());
    if (before != value) return other(key, before.dump(), value.dump());
  }
  const Json before = old.settings.value("sources", Json::array()), &after = now.settings["sources"];
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto hash = [](const Json& source) { return source.is_object() ? source.value("hash", "") : ""; };
    if (i >= after.size() || hash(before[i]) != hash(after[i]) ||
        before[i].value("scored", false) != after[i].value("scored", false))
      return other(fmt::format("source {}", i + 1), before[i].value("file", std::string("?")),
                   i < after.size() ? after[i].value("file", std::string("?")) : "none (or another content)");
  }
  return {};
}

// The folder while it is written.
class Store {
 public:
  Store(std::string folder, const core::CorpusShape& shape)
      : folder_(std::move(folder)), shape_(shape), writer_(shape) {}

  // What is in closed shards.
  Status open() {
    COPPICE_TRY(const std::vector<std::string> shards, core::corpus_shards(folder_));
    next_ = core::next_corpus_shard(shards);
    closed_ = static_cast<int>(shards.size());
    for (const std::string& path : shards) {
      COPPICE_TRY(const core::CorpusShard shard, core::CorpusShard::open(path));
      if (shard.shape() != shape_) return fail(path + ": is of another corpus than the rest of its folder");
      for (int i = 0; i < shard.texts(); ++i) {
        const core::CorpusRecordView text = shard.text(i);
        count(text.job, text.ids.size() - static_cast<std::size_t>(text.start));
      }
    }
    return {};
  }

  Status add(const core::CorpusRecord& record, const CorpusOptions& options) {
    writer_.add(record);
    const std::size_t tokens = record.ids.size() - static_cast<std::size_t>(record.start);
    open_tokens_ += tokens;
    count(record.job, tokens);
    const bool full = open_tokens_ >= static_cast<std::uint64_t>(options.shard_tokens) ||
                      writer_.bytes() >= kMostShardBytes;
    return full ? close() : Status();
  }

  Status close() {
    if (writer_.texts() == 0) return {};
    COPPICE_TRY_STATUS(writer_.write(core::corpus_shard_path(folder_, next_)));
    writer_.clear();
    open_tokens_ = 0;
    ++next_;
    ++closed_;
    return {};
  }

  bool has(std::uint64_t job) const { return done_.contains(job); }
  std::uint64_t texts() const { return done_.size(); }
  std::uint64_t tokens() const { return tokens_; }
  int closed() const { return closed_; }

 private:
  void count(std::uint64_t job, std::size_t tokens) {
    if (done_.insert(job).second) tokens_ += tokens;
  }

  std::string folder_;
  core::CorpusShape shape_;
  core::CorpusShardWriter writer_;
  std::unordered_set<std::uint64_t> done_;
  std::uint64_t tokens_ = 0, open_tokens_ = 0;
  int next_ = 0, closed_ = 0;
};

Result<core::CorpusDescription> describe(const Model& model, const CorpusOptions& options,
                                         const CorpusJobs& jobs) {
  core::CorpusDescription description;
  description.target = fs::path(model.info().path).filename().string();
  description.target_hash = core::to_hex(core::gguf::hash_of_parts(*model.impl().file));
  description.shape.vocabulary_hash =
      core::vocabulary_hash(model.impl().tokenizer.impl().tokenizer->vocabulary().tokens);
  description.shape.vocab = model.info().vocab;
  description.shape.hidden = model.info().hidden;
  description.shape.top_k = options.top_k;
  description.shape.features = static_cast<int>(options.features.size());
  description.feature_layers = options.features;
  description.kinds = jobs.kinds;
  description.settings = settings_of(model, options, jobs.sources);
  return description;
}

// What a run that was killed left half written.
void remove_leftovers(const std::string& folder) {
  std::error_code ignored;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".tmp") && (name.starts_with("shard-") || name.starts_with("corpus.json.")))
      leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) fs::remove(path, ignored);
}

// The folder, made where it is not there, ours alone, with a corpus.json that says what is asked for.
Result<core::FileLock> prepare_folder(const std::string& folder, const core::CorpusDescription* old,
                                      const core::CorpusDescription& now) {
  if (old != nullptr) COPPICE_TRY_STATUS(same_making(folder, *old, now));
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return fail(fmt::format("{}: cannot make the folder: {}", folder, error.message()));
  COPPICE_TRY(core::FileLock lock, core::FileLock::take(folder + "/lock"));
  remove_leftovers(folder);
  core::CorpusDescription description = now;
  if (old != nullptr)
    description.settings["self"] =
        std::max(now.settings["self"].get<std::uint64_t>(), old->settings.value("self", std::uint64_t{0}));
  COPPICE_TRY_STATUS(core::write_corpus_description(folder, description));
  return lock;
}

}  // namespace

Result<CorpusReport> make_corpus(const Model& model, const CorpusOptions& options) {
  COPPICE_TRY_STATUS(check(options, model.info()));
  std::optional<core::CorpusDescription> old;
  if (core::is_corpus_folder(options.folder)) {
    COPPICE_TRY(old, core::read_corpus_description(options.folder));
  }
  COPPICE_TRY(CorpusJobs all, corpus_jobs(model, options, old ? old->kinds : std::vector<std::string>()));
  COPPICE_TRY(const core::CorpusDescription now, describe(model, options, all));
  COPPICE_TRY(const core::FileLock lock, prepare_folder(options.folder, old ? &*old : nullptr, now));
  Store store(options.folder, now.shape);
  COPPICE_TRY_STATUS(store.open());

  CorpusReport report;
  report.left_out = all.left_out;
  report.first_left_out = all.first_left_out;
  const std::uint64_t texts_before = store.texts(), tokens_before = store.tokens();
  std::erase_if(all.jobs, [&](const CorpusJob& job) { return store.has(job.id); });
  int longest = 0;
  for (const CorpusJob& job : all.jobs) longest = std::max(longest, static_cast<int>(job.tokens.size()));
  COPPICE_TRY(const auto runner, CorpusRunner::make(model, options, now.shape, longest));

  const double start = core::seconds();
  const auto look = [&](std::uint64_t in_the_making) {
    CorpusProgress& progress = report.progress;
    progress.texts = store.texts();
    progress.tokens = store.tokens() + in_the_making;
    progress.all_texts = texts_before + all.jobs.size();
    progress.all_tokens = options.tokens;
    progress.seconds = core::seconds() - start;
    progress.run_texts = progress.texts - texts_before;
    progress.run_tokens = progress.tokens - tokens_before;
    progress.shards = store.closed();
  };
  CorpusRunner::Hooks hooks;
  hooks.more = [&] {
    return options.tokens == 0 || store.tokens() + runner->tokens_in_the_making() < options.tokens;
  };
  hooks.finished = [&](core::CorpusRecord&& record) { return store.add(record, options); };
  hooks.go_on = [&] {
    look(runner->tokens_in_the_making());
    report.stopped = options.progress && !options.progress(report.progress);
    return !report.stopped;
  };
  const Status ran = runner->run(all.jobs, hooks);
  COPPICE_TRY_STATUS(store.close());  // what is done is kept, whatever happened
  COPPICE_TRY_STATUS(ran);
  look(0);
  return report;
}

}  // namespace coppice
