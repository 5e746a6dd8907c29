// Two open-addressing hash tables that are filled once and then only read: by a pair of ids, and by a word.
// They are the inner loop of the tokenizer, where the standard maps' one allocation an entry costs three
// times the time.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace coppice::core {

inline std::uint64_t mix_bits(std::uint64_t x) {
  // The finaliser of MurmurHash3 (Appleby, public domain): every input bit reaches every output bit.
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

inline std::uint64_t hash_bytes(std::string_view bytes) {
  std::uint64_t hash = bytes.size();
  while (bytes.size() >= 8) {
    std::uint64_t eight;
    std::memcpy(&eight, bytes.data(), 8);
    hash = mix_bits(hash ^ eight);
    bytes.remove_prefix(8);
  }
  std::uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  return mix_bits(hash ^ rest);
}

// Slots for `count` entries at a load of at most one half: a power of two.
inline std::size_t slots_for(std::size_t count) { return std::bit_ceil(count * 2 + 2); }

// (left, right) -> Value. Both are below 2^32 - 1 in at least one half, so that the key of all ones is never
// used.
template <class Value>
class PairMap {
 public:
  explicit PairMap(std::size_t capacity = 0) : slots_(slots_for(capacity)), mask_(slots_.size() - 1) {}

  // False, and nothing changes, if the pair is there. At most `capacity` pairs.
  bool add(std::uint32_t left, std::uint32_t right, Value value) {
    const std::uint64_t key = key_of(left, right);
    std::size_t at = mix_bits(key) & mask_;
    for (; slots_[at].key != kFree; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return false;
    }
    slots_[at] = {key, value};
    return true;
  }

  const Value* find(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = mix_bits(key) & mask_;; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return &slots_[at].value;
      if (slots_[at].key == kFree) return nullptr;
    }
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  static std::uint64_t key_of(std::uint32_t left, std::uint32_t right) {
    return (std::uint64_t{left} << 32) | right;
  }
  struct Slot {
    std::uint64_t key = kFree;
    Value value{};
  };
  std::vector<Slot> slots_;
  std::size_t mask_;
};

// word -> number >= 0. The map holds numbers only, eight bytes a slot, so that it stays in the cache: which
// word a number stands for is said by `spell` (number -> std::string_view), the same in every call.
class WordMap {
 public:
  explicit WordMap(std::size_t capacity = 0) : slots_(slots_for(capacity)), mask_(slots_.size() - 1) {}

  // False, and nothing changes, if the word of `value` is there. At most `capacity` words.
  template <class Spell>
  bool add(std::int32_t value, const Spell& spell) {
    const std::string_view word = spell(value);
    const std::uint64_t hash = hash_bytes(word);
    const std::size_t at = place(word, hash, spell);
    if (slots_[at].value >= 0) return false;
    slots_[at] = {tag_of(hash), value};
    return true;
  }

  // -1 if it is not there.
  template <class Spell>
  std::int32_t find(std::string_view word, const Spell& spell) const {
    return slots_[place(word, hash_bytes(word), spell)].value;
  }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t value = -1;
  };
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

  // The slot of the word, or the free one where it would be.
  template <class Spell>
  std::size_t place(std::string_view word, std::uint64_t hash, const Spell& spell) const {
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.value < 0 || (slot.tag == tag_of(hash) && spell(slot.value) == word)) return at;
    }
  }

  std::vector<Slot> slots_;
  std::size_t mask_;
};

}  // namespace coppice::core
