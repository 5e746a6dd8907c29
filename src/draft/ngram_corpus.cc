#include "draft/ngram_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/os.h"
#include "corpus/corpus_folder.h"

namespace coppice::core {
namespace {

using Use = std::function<void(const CorpusText&)>;
using Json = nlohmann::json;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A number of the object from `least` to `most`; `fallback` where it is not there.
Result<double> number_of(const Json& json, const char* field, double fallback, double most,
                         const std::string& where) {
  const auto at = json.find(field);
  if (at == json.end()) return fallback;
  if (at->is_number() && at->get<double>() >= 0 && at->get<double>() <= most) return at->get<double>();
  return fail(fmt::format("{}: \"{}\" should be a number from 0 to {}", where, field, most));
}

// How a text was drawn. Its noise is known where the stream is said.
Status read_drawing(const Json& json, const std::string& where, CorpusText& text) {
  COPPICE_TRY(const double temperature, number_of(json, "temperature", 0, 100, where));
  COPPICE_TRY(const double top_k, number_of(json, "top_k", 0, 1 << 30, where));
  COPPICE_TRY(const double stream, number_of(json, "stream", 0, 4294967295.0, where));
  text.temperature = static_cast<float>(temperature);
  text.keyed = temperature > 0 && json.contains("stream");
  if (!text.keyed) return {};
  text.sampling.temperature = text.temperature;
  text.sampling.top_k = static_cast<int>(top_k);
  if (const auto seed = json.find("seed"); seed != json.end()) {
    if (!seed->is_number_unsigned())
      return fail(where + ": \"seed\" should be a whole number from 0 to 18446744073709551615");
    text.sampling.seed = seed->get<std::uint64_t>();
  }
  text.sampling.stream = static_cast<std::uint32_t>(stream);
  return {};
}

// Reads one line's object; `where` is "file, line n".
Result<CorpusText> read_line(const Tokenizer& tokenizer, std::string_view line, const std::string& where) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object())
    return fail(where + ": not a JSON object; {\"ids\": [...]} or {\"text\": \"...\"} is expected");
  CorpusText text;
  if (const auto content = json.find("text"); content != json.end() && content->is_string()) {
    text.tokens = tokenizer.encode(content->get_ref<const std::string&>());
    return text;
  }
  const auto ids = json.find("ids");
  if (ids == json.end() || !ids->is_array())
    return fail(where + ": neither \"ids\" (an array) nor \"text\" (a string)");
  text.tokens.reserve(ids->size());
  for (const Json& id : *ids) {
    const bool fine =
        id.is_number_integer() && id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() < tokenizer.size();
    if (!fine)
      return fail(fmt::format("{}: ids[{}] is {}; token ids of this model are 0 to {}", where,
                              text.tokens.size(), id.dump(-1, ' ', false, Json::error_handler_t::replace),
                              tokenizer.size() - 1));
    text.tokens.push_back(static_cast<Token>(id.get<std::int64_t>()));
  }
  if (const auto start = json.find("start"); start != json.end()) {
    const bool fine = start->is_number_integer() && start->get<std::int64_t>() >= 0 &&
                      start->get<std::uint64_t>() <= text.tokens.size();
    if (!fine)
      return fail(fmt::format("{}: \"start\" should be a number from 0 to {}", where, text.tokens.size()));
    text.start = start->get<std::size_t>();
  }
  COPPICE_TRY_STATUS(read_drawing(json, where, text));
  return text;
}

Status read_jsonl(const Tokenizer& tokenizer, const std::string& path, std::string_view all, const Use& use) {
  for (int line_number = 1; !all.empty(); ++line_number) {
    const std::size_t end = std::min(all.find('\n'), all.size());
    const std::string_view line = all.substr(0, end);
    all.remove_prefix(std::min(end + 1, all.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    COPPICE_TRY(const CorpusText text,
                read_line(tokenizer, line, fmt::format("{}, line {}", path, line_number)));
    use(text);
  }
  return {};
}

// Where a .npy file's integers begin. Only what we document is accepted.
Result<std::size_t> npy_data(const std::string& path, std::span<const std::byte> bytes) {
  const std::string_view all = as_text(bytes);
  if (bytes.size() < 12 || !all.starts_with("\x93NUMPY")) return fail(path + ": not a .npy file");
  const int version = static_cast<int>(bytes[6]);
  std::size_t length = static_cast<std::size_t>(bytes[8]) | static_cast<std::size_t>(bytes[9]) << 8;
  std::size_t begin = 10;
  if (version >= 2) {
    length |= static_cast<std::size_t>(bytes[10]) << 16 | static_cast<std::size_t>(bytes[11]) << 24;
    begin = 12;
  }
  if (length > bytes.size() - begin) return fail(path + ": cut off inside its header");
  const std::string_view header = all.substr(begin, length);
  const bool right_type =
      header.find("'<i4'") != std::string_view::npos || header.find("'<u4'") != std::string_view::npos;
  const std::size_t comma = header.find(',', std::min(header.find("'shape': ("), header.size()));
  const bool flat = comma != std::string_view::npos && comma + 1 < header.size() && header[comma + 1] == ')';
  if (!right_type || !flat)
    return fail(path + ": an array of one dimension of 32-bit integers (dtype '<i4') is expected");
  return begin + length;
}

Status read_integers(const Tokenizer& tokenizer, const std::string& path, std::span<const std::byte> bytes,
                     const Use& use) {
  if (bytes.size() % 4 != 0)
    return fail(fmt::format("{}: {} bytes are no whole number of 32-bit ids", path, bytes.size()));
  CorpusText text;
  const auto finish = [&] {
    if (!text.tokens.empty()) use(text);
    text.tokens.clear();
  };
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::int32_t id = 0;
    std::memcpy(&id, bytes.data() + i, 4);
    if (id == -1) {
      finish();
      continue;
    }
    if (id < 0 || id >= tokenizer.size())
      return fail(fmt::format("{}: id {} is {}; token ids of this model are 0 to {}, and -1 ends a text",
                              path, i / 4, id, tokenizer.size() - 1));
    text.tokens.push_back(id);
  }
  finish();
  return {};
}

// How a corpus's texts were drawn, as corpus.json says it. Texts that were only scored are nobody's draws
// here.
class CorpusDrawing {
 public:
  explicit CorpusDrawing(const CorpusDescription& description) {
    const auto& settings = description.settings;
    const auto seed = settings.find("seed"), top_k = settings.find("sampling_top_k");
    known_ = seed != settings.end() && seed->is_number_unsigned() && top_k != settings.end() &&
             top_k->is_number_integer() && top_k->get<std::int64_t>() >= 0 &&
             top_k->get<std::int64_t>() <= description.shape.vocab;
    if (!known_) return;
    seed_ = seed->get<std::uint64_t>();
    top_k_ = top_k->get<int>();
    const auto sources = settings.find("sources");
    if (sources == settings.end() || !sources->is_array()) return;
    for (const auto& source : *sources)
      scored_.push_back(source.is_object() && source.value("scored", Json(false)) == Json(true));
  }

  void describe(const CorpusRecordView& record, CorpusText& text) const {
    text.temperature = record.temperature;
    const std::uint64_t source = record.job >> 32;  // 0: the model's own; then those of the list
    const bool scored = source > 0 && source <= scored_.size() && scored_[source - 1];
    text.keyed = known_ && record.temperature > 0 && !scored;
    if (!text.keyed) return;
    text.sampling.temperature = record.temperature;
    text.sampling.top_k = top_k_;
    text.sampling.seed = corpus_seed(seed_, record.job);
  }

 private:
  bool known_ = false;
  std::uint64_t seed_ = 0;
  int top_k_ = 0;
  std::vector<bool> scored_;
};

Status read_corpus(const Tokenizer& tokenizer, const std::string& folder, const Use& use) {
  COPPICE_TRY(const CorpusDescription description, read_corpus_description(folder));
  COPPICE_TRY(const std::vector<std::string> shards, corpus_shards(folder));
  const CorpusDrawing drawing(description);
  const std::uint64_t hash = vocabulary_hash(tokenizer.vocabulary().tokens);
  for (const std::string& path : shards) {
    COPPICE_TRY(const CorpusShard shard, CorpusShard::open(path));
    if (shard.shape().vocabulary_hash != hash || shard.shape().vocab != tokenizer.size())
      return fail(path + ": is of a model with another vocabulary");
    for (int i = 0; i < shard.texts(); ++i) {
      const CorpusRecordView record = shard.text(i);
      CorpusText text;
      text.tokens.assign(record.ids.begin(), record.ids.end());
      text.start = static_cast<std::size_t>(record.start);
      drawing.describe(record, text);
      use(text);
    }
  }
  return {};
}

std::string ending(const std::string& path) {
  const std::size_t dot = path.find_last_of("./");
  return dot == std::string::npos || path[dot] == '/' ? "" : path.substr(dot);
}

std::string file_name(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}

Status check(const NgramCorpus& corpus) {
  if (corpus.inputs.empty()) return fail("no files to count; name at least one text or token file");
  if (corpus.order < 1 || corpus.order > kMaxNgramContext)
    return fail(fmt::format("order {} is out of range: the longest context can have 1 to {} tokens",
                            corpus.order, kMaxNgramContext));
  if (corpus.min_count.size() > static_cast<std::size_t>(corpus.order) + 1)
    return fail(fmt::format("min_count has {} values; at most one for each context length 0 to {}",
                            corpus.min_count.size(), corpus.order));
  for (const int least : corpus.min_count)
    if (least < 1) return fail(fmt::format("min_count {} should be 1 or more", least));
  if (corpus.max_continuations < 0) return fail("max_continuations should be 0 (all) or more");
  return {};
}

}  // namespace

Status read_texts(const Tokenizer& tokenizer, const std::string& path, const Use& use) {
  if (is_corpus_folder(path)) return read_corpus(tokenizer, path, use);
  COPPICE_TRY(const MappedFile file, MappedFile::open(path));
  const std::string kind = ending(path);
  if (kind == ".jsonl") return read_jsonl(tokenizer, path, as_text(file.bytes()), use);
  if (kind == ".bin") return read_integers(tokenizer, path, file.bytes(), use);
  if (kind == ".npy") {
    COPPICE_TRY(const std::size_t begin, npy_data(path, file.bytes()));
    return read_integers(tokenizer, path, file.bytes().subspan(begin), use);
  }
  CorpusText text;
  text.tokens = tokenizer.encode(as_text(file.bytes()));
  use(text);
  return {};
}

Result<NgramReport> build_ngram(const Tokenizer& tokenizer, const NgramCorpus& corpus) {
  COPPICE_TRY_STATUS(check(corpus));
  KatzBuildOptions options;
  options.order = corpus.order;
  options.vocab = tokenizer.size();
  options.vocabulary_hash = vocabulary_hash(tokenizer.vocabulary().tokens);
  options.min_count = corpus.min_count;
  options.max_continuations = corpus.max_continuations;
  options.provenance = corpus.provenance;
  if (options.provenance.empty())
    for (const std::string& input : corpus.inputs)
      options.provenance += (options.provenance.empty() ? "" : ", ") + file_name(input);

  KatzBuilder builder(options);
  NgramReport report;
  constexpr std::uint64_t kReportEvery = 100000;  // tokens
  std::uint64_t next_report = kReportEvery;
  for (const std::string& input : corpus.inputs) {
    COPPICE_TRY_STATUS(read_texts(tokenizer, input, [&](const CorpusText& text) {
      builder.add(text.tokens, text.start);
      ++report.texts;
      if (!corpus.progress || builder.tokens() < next_report) return;
      corpus.progress(builder.tokens());
      next_report = builder.tokens() + kReportEvery;
    }));
  }
  if (builder.tokens() == 0) return fail("the inputs hold no tokens to count");
  if (corpus.progress) corpus.progress(builder.tokens());
  const std::vector<std::byte> bytes = builder.to_bytes();
  COPPICE_TRY_STATUS(write_file(corpus.output, [&](const Append& append) { return append(bytes); }));
  report.tokens = builder.tokens();
  report.bytes = bytes.size();
  return report;
}

}  // namespace coppice::core
