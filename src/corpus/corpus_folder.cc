#include "corpus/corpus_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/check.h"
#include "base/os.h"

namespace coppice::core {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::string_view kPrefix = "shard-", kSuffix = ".corpus";

std::string description_path(const std::string& folder) { return folder + "/corpus.json"; }

// The number in "shard-00012.corpus"; -1 for other names.
int shard_number(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
      name.size() <= kPrefix.size() + kSuffix.size())
    return -1;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size() - kSuffix.size();
  int number = -1;
  const auto [stopped, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stopped == end && number >= 0 ? number : -1;
}

// Fields of corpus.json; the first that is missing or of another kind is kept for the message.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}
  template <class T>
  void take(const char* name, T& to) {
    try {
      read(json_.at(name), to);
    } catch (const nlohmann::json::exception&) {
      if (bad.empty()) bad = name;
    }
  }
  std::string bad;

 private:
  template <class T>
  static void read(const Json& json, T& to) {
    to = json.get<T>();
  }
  // get<int>() would make one of any number.
  static void read(const Json& json, int& to) {
    const bool fits = json.is_number_integer() && json == json.get<int>();
    to = fits ? json.get<int>() : Json("no int").get<int>();
  }
  static void read(const Json& json, std::vector<int>& to) {
    to.clear();
    for (const Json& element : json.get_ref<const Json::array_t&>()) read(element, to.emplace_back());
  }

  const Json& json_;
};

}  // namespace

std::string CorpusDescription::to_text() const {
  Json json = {{"version", kVersion},
               {"target", target},
               {"target_hash", target_hash},
               {"vocab", shape.vocab},
               {"vocabulary_hash", fmt::format("{:016x}", shape.vocabulary_hash)},
               {"hidden", shape.hidden},
               {"top_k", shape.top_k},
               {"feature_layers", feature_layers},
               {"kinds", kinds},
               {"settings", settings}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CorpusDescription> CorpusDescription::parse(const std::string& text, const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return fail(name + ": is no JSON object");
  CorpusDescription out;
  Fields fields(json);
  int version = 0;
  std::string vocabulary_hash;
  fields.take("version", version);
  if (fields.bad.empty() && version != kVersion)
    return fail(fmt::format("{}: is of version {}; version {} is known", name, version, kVersion));
  fields.take("target", out.target);
  fields.take("target_hash", out.target_hash);
  fields.take("vocab", out.shape.vocab);
  fields.take("vocabulary_hash", vocabulary_hash);
  fields.take("hidden", out.shape.hidden);
  fields.take("top_k", out.shape.top_k);
  fields.take("feature_layers", out.feature_layers);
  fields.take("kinds", out.kinds);
  fields.take("settings", out.settings);
  const char* end = vocabulary_hash.data() + vocabulary_hash.size();
  const auto [stopped, error] = std::from_chars(vocabulary_hash.data(), end, out.shape.vocabulary_hash, 16);
  if (fields.bad.empty() && (error != std::errc() || stopped != end)) fields.bad = "vocabulary_hash";
  if (!fields.bad.empty())
    return fail(fmt::format("{}: \"{}\" is missing or not what it should be", name, fields.bad));
  out.shape.features = static_cast<int>(out.feature_layers.size());
  return out;
}

Result<std::vector<std::string>> corpus_shards(const std::string& folder) {
  std::vector<std::pair<int, std::string>> found;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) return fail(fmt::format("{}: cannot list the folder: {}", folder, error.message()));
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (error) return fail(fmt::format("{}: cannot list the folder: {}", folder, error.message()));
    if (const int number = shard_number(entries->path().filename().string()); number >= 0)
      found.emplace_back(number, entries->path().string());
  }
  std::ranges::sort(found);
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (auto& [number, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::string corpus_shard_path(const std::string& folder, int number) {
  return fmt::format("{}/{}{:05}{}", folder, kPrefix, number, kSuffix);
}

int next_corpus_shard(const std::vector<std::string>& shards) {
  int next = 0;
  for (const std::string& path : shards)
    next = std::max(next, shard_number(fs::path(path).filename().string()) + 1);
  return next;
}

Result<CorpusDescription> read_corpus_description(const std::string& folder) {
  const std::string path = description_path(folder);
  COPPICE_TRY(const std::string text, read_file(path));
  return CorpusDescription::parse(text, path);
}

Status write_corpus_description(const std::string& folder, const CorpusDescription& description) {
  const std::string text = description.to_text();
  return write_file(description_path(folder),
                    [&](const Append& append) { return append(std::as_bytes(std::span(text))); });
}

bool is_corpus_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && fs::exists(description_path(path), ignored);
}

std::uint64_t corpus_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t corpus_seed(std::uint64_t seed, std::uint64_t job) {
  return corpus_bits(corpus_bits(seed) ^ job);
}

}  // namespace coppice::core
