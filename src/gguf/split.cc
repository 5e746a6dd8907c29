#include "gguf/split.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "gguf/layout.h"

namespace coppice::core::gguf {
namespace {

constexpr std::string_view kNumberKey = "split.no", kCountKey = "split.count",
                           kTensorsKey = "split.tensors.count";
constexpr std::int64_t kMostParts = 99999;  // five digits in a name

// What the keys of a part say.
struct Claim {
  std::int64_t number = 0, count = 1;
  std::int64_t tensors = -1;  // of all parts; -1: not said

  bool split() const { return count > 1; }
};

const std::string& path_of(const Access::State& part) { return part.parts[0].path; }

const Value* find(const Access::State& part, std::string_view name) {
  const auto found =
      std::find_if(part.keys.begin(), part.keys.end(), [&](const Key& key) { return key.name == name; });
  return found == part.keys.end() ? nullptr : &found->value;
}

// A whole number from `least` to `most`; `otherwise` where the key is missing.
Result<std::int64_t> number(const Access::State& part, std::string_view key, std::int64_t least,
                            std::int64_t most, std::int64_t otherwise) {
  const Value* value = find(part, key);
  if (value == nullptr) return otherwise;
  const bool whole =
      !value->is_array && value->is_number() && value->type != Type::f32 && value->type != Type::f64;
  if (!whole) return fail(fmt::format("{}: key '{}' is no whole number", path_of(part), key));
  const std::int64_t said = value->integer();
  if (said < least || said > most)
    return fail(
        fmt::format("{}: key '{}' is {}; {} to {} would be right", path_of(part), key, said, least, most));
  return said;
}

Result<Claim> claim_of(const Access::State& part) {
  Claim claim;
  COPPICE_TRY(claim.count, number(part, kCountKey, 0, kMostParts, 1));
  claim.count = std::max<std::int64_t>(claim.count, 1);
  if (!claim.split()) return claim;
  if (find(part, kNumberKey) == nullptr)
    return fail(fmt::format("{}: is one of {} parts, but key '{}' does not say which", path_of(part),
                            claim.count, kNumberKey));
  COPPICE_TRY(claim.number, number(part, kNumberKey, 0, claim.count - 1, 0));
  COPPICE_TRY(claim.tensors, number(part, kTensorsKey, 0, INT64_MAX, -1));
  return claim;
}

Result<Access::State> load(const std::string& path) {
  Access::State state;
  COPPICE_TRY(MappedFile mapping, MappedFile::open(path));
  state.parts.push_back({path, mapping.bytes()});
  state.mappings.push_back(std::move(mapping));
  COPPICE_TRY_STATUS(Access::parse(state));
  return state;
}

// That the parts are the parts of one file, in order.
Status check_claims(const std::vector<Access::State>& parts) {
  std::int64_t tensors = 0, said = -1;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    COPPICE_TRY(const Claim claim, claim_of(parts[i]));
    if (claim.count != static_cast<std::int64_t>(parts.size()))
      return fail(fmt::format("{}: says that it is one of {} parts, but it lies among {}", path_of(parts[i]),
                              claim.count, parts.size()));
    if (claim.number != static_cast<std::int64_t>(i))
      return fail(fmt::format("{}: says that it is part {}, but it is in the place of part {} of {}",
                              path_of(parts[i]), claim.number + 1, i + 1, parts.size()));
    if (claim.tensors >= 0 && said >= 0 && claim.tensors != said)
      return fail(fmt::format("{}: says that all parts have {} tensors, but {} says {}", path_of(parts[i]),
                              claim.tensors, path_of(parts[0]), said));
    if (claim.tensors >= 0) said = claim.tensors;
    tensors += static_cast<std::int64_t>(parts[i].tensors.size());
  }
  if (said >= 0 && said != tensors)
    return fail(fmt::format("{}: says that all parts have {} tensors, but together they have {}",
                            path_of(parts[0]), said, tensors));
  return {};
}

// The tensors of `part` behind those of `whole`.
void take_tensors(Access::State& whole, Access::State& part) {
  const int number = static_cast<int>(whole.parts.size());
  for (Tensor& tensor : part.tensors) {
    tensor.part = number;
    whole.tensors.push_back(tensor);
  }
  whole.parts.push_back(std::move(part.parts[0]));
  for (MappedFile& mapping : part.mappings) whole.mappings.push_back(std::move(mapping));
}

}  // namespace

std::optional<SplitName> split_name(std::string_view path) {
  // ...-00002-of-00003.gguf
  constexpr std::string_view kOf = "-of-", kEnding = ".gguf";
  constexpr std::size_t kDigits = 5, kTail = 1 + kDigits + kOf.size() + kDigits + kEnding.size();
  if (path.size() <= kTail || !path.ends_with(kEnding)) return {};
  const std::string_view tail = path.substr(path.size() - kTail);
  if (tail[0] != '-' || tail.substr(1 + kDigits, kOf.size()) != kOf) return {};
  const auto digits = [](std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && text[0] != '-' ? value : 0;
  };
  const int number = digits(tail.substr(1, kDigits));
  const int count = digits(tail.substr(1 + kDigits + kOf.size(), kDigits));
  if (number < 1 || number > count) return {};
  return SplitName{std::string(path.substr(0, path.size() - kTail)), number - 1, count};
}

std::string split_path(const SplitName& name) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.prefix, name.number + 1, name.count);
}

Result<std::vector<Access::State>> Access::open(const std::string& path) {
  std::vector<State> parts;
  COPPICE_TRY(State first, load(path));
  COPPICE_TRY(const Claim claim, claim_of(first));
  if (!claim.split()) {
    parts.push_back(std::move(first));
    return parts;
  }
  auto name = split_name(path);
  if (!name || name->number != claim.number || name->count != claim.count)
    return fail(fmt::format(
        "{}: is part {} of {} of a split model, but its name does not end in -{:05}-of-{:05}.gguf, so the "
        "other parts cannot be found: give the parts their names back",
        path, claim.number + 1, claim.count, claim.number + 1, claim.count));
  for (name->number = 0; name->number < name->count; ++name->number) {
    if (name->number == claim.number) {
      parts.emplace_back();  // its place
      continue;
    }
    auto part = load(split_path(*name));
    if (!part)
      return fail(fmt::format("{} (it is part {} of the {} that {} belongs to)", part.error().message,
                              name->number + 1, claim.count, path));
    parts.push_back(*std::move(part));
  }
  parts[static_cast<std::size_t>(claim.number)] = std::move(first);
  return parts;
}

Result<Access::State> Access::join(std::vector<State> parts) {
  COPPICE_TRY_STATUS(check_claims(parts));
  State whole = std::move(parts[0]);
  if (parts.size() == 1) return whole;
  for (std::size_t i = 1; i < parts.size(); ++i) take_tensors(whole, parts[i]);
  whole.tensors_by_name = sorted_by_name(whole.tensors);
  for (std::size_t i = 1; i < whole.tensors.size(); ++i) {
    const Tensor& a = whole.tensors[whole.tensors_by_name[i - 1]];
    const Tensor& b = whole.tensors[whole.tensors_by_name[i]];
    if (a.name == b.name)
      return fail(fmt::format("{}: tensor {} is in {} as well; names must differ",
                              whole.parts[static_cast<std::size_t>(b.part)].path, quoted(b.name),
                              whole.parts[static_cast<std::size_t>(a.part)].path));
  }
  std::erase_if(whole.keys, [](const Key& key) {
    return key.name == kNumberKey || key.name == kCountKey || key.name == kTensorsKey;
  });
  whole.keys_by_name = sorted_by_name(whole.keys);
  return whole;
}

Hash128 hash_of_parts(const File& file) {
  std::vector<Hash128> hashes;
  for (const Part& part : file.parts()) hashes.push_back(hash_of(part.bytes));
  file.release();
  return hashes.size() == 1 ? hashes[0] : hash_of(std::as_bytes(std::span(hashes)));
}

Result<Hash128> hash_of_file(const std::string& path) {
  if (split_name(path)) {
    if (const auto file = File::open(path)) return hash_of_parts(**file);
  }
  COPPICE_TRY(const MappedFile file, MappedFile::open(path));
  const Hash128 hash = hash_of(file.bytes());
  file.release(file.bytes());
  return hash;
}

}  // namespace coppice::core::gguf
