#include "text/character_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace coppice::core {
namespace {

// A unit of darts-clone's double array.
bool has_leaf(std::uint32_t unit) { return ((unit >> 8) & 1) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFu; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFu; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }

tl::unexpected<Error> wrong(std::string_view what) {
  return fail(fmt::format("tokenizer.ggml.precompiled_charsmap {}", what));
}

}  // namespace

Result<CharacterMap> CharacterMap::read(std::string_view bytes) {
  CharacterMap map;
  std::uint32_t trie = 0;
  if (bytes.size() < sizeof(trie)) return wrong("has no size of its trie; it must begin with 4 bytes of it");
  std::memcpy(&trie, bytes.data(), sizeof(trie));
  bytes.remove_prefix(sizeof(trie));
  if (trie > bytes.size() || trie % 4 != 0 || trie == 0) {
    return wrong(
        fmt::format("says its trie has {} bytes; it must be a multiple of 4 within the {} that follow", trie,
                    bytes.size()));
  }
  map.replacements_ = bytes.substr(trie);
  if (map.replacements_.empty() || map.replacements_.back() != '\0') {
    return wrong("has replacements that are not ended; each must end with a zero byte");
  }
  map.units_.resize(trie / 4);
  std::memcpy(map.units_.data(), bytes.data(), trie);
  return map;
}

std::optional<CharacterMap::Match> CharacterMap::find(std::string_view text) const {
  constexpr std::size_t kLongest = 256;
  if (units_.empty()) return std::nullopt;
  std::optional<Match> match;
  std::uint32_t at = offset_of(units_[0]);
  const std::size_t size = std::min(text.size(), kLongest);
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || label_of(units_[at]) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) break;
    const std::uint32_t value = value_of(units_[at]);
    if (value >= replacements_.size()) break;
    match = Match{i + 1, std::string_view(replacements_.data() + value)};
  }
  return match;
}

}  // namespace coppice::core
