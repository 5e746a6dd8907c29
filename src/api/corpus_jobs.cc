#include "api/corpus_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "api/impl.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/os.h"

namespace coppice {
namespace {

using Json = nlohmann::json;

constexpr int kLeastAnswer = 16;  // tokens: a prompt that leaves less room is left out
constexpr std::uint64_t kMostLines = std::uint64_t{1} << 32;

std::string stem(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  return name.substr(0, std::min(name.size(), name.rfind('.')));
}

int kind_index(std::vector<std::string>& kinds, const std::string& kind) {
  const auto found = std::ranges::find(kinds, kind);
  if (found != kinds.end()) return static_cast<int>(found - kinds.begin());
  kinds.push_back(kind);
  return static_cast<int>(kinds.size()) - 1;
}

std::string text_of(const Json& json, const char* field) {
  const auto found = json.find(field);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Reads lines of one file into jobs.
class Source {
 public:
  Source(const Model& model, const CorpusOptions& options, CorpusJobs& out)
      : model_(model), options_(options), out_(out) {}

  Status read(const std::string& path, bool scored, int number) {
    COPPICE_TRY(const core::MappedFile file, core::MappedFile::open(path));
    const core::Hash128 hash = core::hash_of(file.bytes());
    out_.sources.push_back({{"file", path}, {"hash", core::to_hex(hash)}, {"scored", scored}});
    std::string_view all{reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
    const std::size_t before = out_.jobs.size();
    for (std::uint64_t line_number = 1; !all.empty(); ++line_number) {
      if (line_number > kMostLines) return fail(path + ": has too many lines");
      const std::size_t end = std::min(all.find('\n'), all.size());
      const std::string_view line = all.substr(0, end);
      all.remove_prefix(std::min(end + 1, all.size()));
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      where_ = fmt::format("{}, line {}", path, line_number);
      CorpusJob job;
      job.id = (static_cast<std::uint64_t>(number) << 32) + line_number - 1;
      job.scored = scored;
      COPPICE_TRY_STATUS(read_line(line, stem(path), job));
    }
    if (out_.jobs.size() == before && out_.left_out == 0)
      return fail(fmt::format("{}: has no {}", path, scored ? "texts" : "prompts"));
    return {};
  }

 private:
  Status read_line(std::string_view line, const std::string& default_kind, CorpusJob& job) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) return fail(where_ + ": is no JSON object");
    const std::string kind = text_of(json, "kind");
    COPPICE_TRY_STATUS(job.scored ? scored_text(json, job) : prompt(json, job));
    const int room = job.scored ? 0 : std::min(kLeastAnswer, options_.max_tokens);
    if (static_cast<int>(job.tokens.size()) + room > options_.context) {
      if (out_.left_out++ == 0) out_.first_left_out = where_;
      return {};
    }
    job.kind = kind_index(out_.kinds, kind.empty() ? default_kind : kind);
    out_.jobs.push_back(std::move(job));
    return {};
  }

  Status prompt(const Json& json, CorpusJob& job) {
    if (json.contains("prompt")) {
      job.tokens = model_.tokenizer().encode(text_of(json, "prompt"));
    } else {
      COPPICE_TRY(const std::vector<ChatMessage> messages, conversation(json));
      if (!chat_) {
        COPPICE_TRY(chat_, model_.chat_template());
      }
      auto tokens = chat_->tokens(messages);
      if (!tokens) return fail(fmt::format("{}: {}", where_, tokens.error().message));
      job.tokens = std::move(*tokens);
    }
    if (job.tokens.empty()) return fail(where_ + ": the prompt is empty");
    job.start = static_cast<int>(job.tokens.size());
    return {};
  }

  Result<std::vector<ChatMessage>> conversation(const Json& json) const {
    std::vector<ChatMessage> messages;
    if (const std::string user = text_of(json, "user"); !user.empty()) {
      messages.push_back({"user", user});
      return messages;
    }
    const auto list = json.find("messages");
    if (list == json.end() || !list->is_array() || list->empty())
      return fail(where_ +
                  ": has neither \"prompt\" (a text), \"user\" (a text) nor \"messages\" (an array)");
    for (const Json& message : *list) {
      const bool good = message.is_object() && !text_of(message, "role").empty() &&
                        message.contains("content") && message["content"].is_string();
      if (!good) return fail(where_ + ": a message needs a \"role\" and a \"content\", both texts");
      messages.push_back({text_of(message, "role"), text_of(message, "content")});
    }
    return messages;
  }

  Status scored_text(const Json& json, CorpusJob& job) const {
    const auto ids = json.find("ids");
    if (ids == json.end() || !ids->is_array() || ids->empty())
      return fail(where_ + ": \"ids\" should be an array of token ids");
    const int vocab = model_.info().vocab;
    for (const Json& id : *ids) {
      if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() >= vocab)
        return fail(fmt::format("{}: ids[{}] is no token id of this model, which are 0 to {}", where_,
                                job.tokens.size(), vocab - 1));
      job.tokens.push_back(static_cast<Token>(id.get<std::int64_t>()));
    }
    const auto start = json.find("start");
    const auto most = static_cast<std::int64_t>(job.tokens.size());
    if (start != json.end() &&
        (!start->is_number_integer() || start->get<std::int64_t>() < 1 || start->get<std::int64_t>() > most))
      return fail(
          fmt::format("{}: \"start\" should be a number from 1 to {}: the first token that was "
                      "generated",
                      where_, most));
    job.start = start == json.end() ? 1 : start->get<int>();
    return {};
  }

  const Model& model_;
  const CorpusOptions& options_;
  CorpusJobs& out_;
  std::optional<ChatTemplate> chat_;
  std::string where_;
};

Status add_self_made(const Model& model, const CorpusOptions& options, CorpusJobs& out) {
  if (options.self == 0) return {};
  const core::Tokenizer& tokenizer = *model.impl().tokenizer.impl().tokenizer;
  const core::Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool has_template = !vocabulary.chat_template.empty() || !model.impl().chat.program.empty();
  const bool talks = has_template || vocabulary.bos == kNoToken;
  std::vector<Token> opening = {vocabulary.bos};
  if (talks) {
    auto chat = model.impl().chat_template();
    if (!chat) return fail(fmt::format("self: {}: {}", model.info().path, chat.error().message));
    COPPICE_TRY(opening, chat->before_message(tokenizer));
  }
  const int kind = kind_index(out.kinds, talks ? "magpie" : "begin");
  for (std::uint64_t i = 0; i < options.self; ++i) {
    CorpusJob job;
    job.id = (std::uint64_t{kSelfMade} << 32) + i;
    job.kind = kind;
    job.self = talks;
    job.tokens = opening;
    job.start = static_cast<int>(opening.size());
    out.jobs.push_back(std::move(job));
  }
  return {};
}

float pick_temperature(const CorpusOptions& options, std::uint64_t seed) {
  double all = 0;
  for (const CorpusTemperature& choice : options.temperatures) all += choice.share;
  double at = static_cast<double>(core::corpus_bits(seed ^ 0x7e3a) >> 11) * 0x1p-53 * all;
  for (const CorpusTemperature& choice : options.temperatures) {
    if (at < choice.share) return choice.temperature;
    at -= choice.share;
  }
  return options.temperatures.back().temperature;
}

}  // namespace

Result<CorpusJobs> corpus_jobs(const Model& model, const CorpusOptions& options,
                               std::vector<std::string> kinds) {
  CorpusJobs out;
  out.kinds = std::move(kinds);
  out.sources = nlohmann::ordered_json::array();
  Source source(model, options, out);
  int number = kSelfMade;
  for (const std::string& path : options.prompts) COPPICE_TRY_STATUS(source.read(path, false, ++number));
  for (const std::string& path : options.score) COPPICE_TRY_STATUS(source.read(path, true, ++number));
  COPPICE_TRY_STATUS(add_self_made(model, options, out));
  for (CorpusJob& job : out.jobs) {
    job.seed = corpus_seed(options.seed, job.id);
    if (!job.scored) job.temperature = pick_temperature(options, job.seed);
  }
  std::ranges::sort(out.jobs, {}, [](const CorpusJob& job) { return std::pair(job.seed, job.id); });
  return out;
}

}  // namespace coppice
