// Lists of small plain values, each list once: equal lists have equal numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace coppice::core::grammar {

// A place in an automaton, and what comes after the rule's end there: the number of a stack.
struct Place {
  std::uint32_t position = 0;
  std::uint32_t stack = 0;
  friend bool operator==(const Place&, const Place&) = default;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class InternedPlaces {
 public:
  InternedPlaces() { clear(); }

  // List 0 is the empty one.
  void clear() {
    values_.clear();
    ends_.clear();
    table_.assign(64, kFree);
    add({});
  }
  std::uint32_t add(std::span<const Place> list) {
    const std::uint64_t hash = hash_of(list);
    std::size_t at = slot(hash);
    for (; table_[at] != kFree; at = (at + 1) & (table_.size() - 1)) {
      const auto there = (*this)[table_[at]];
      if (std::equal(there.begin(), there.end(), list.begin(), list.end())) return table_[at];
    }
    const std::uint32_t number = size();
    values_.insert(values_.end(), list.begin(), list.end());
    ends_.push_back(values_.size());
    table_[at] = number;
    if (2 * ends_.size() > table_.size()) grow();
    return number;
  }
  // Valid until the next add().
  std::span<const Place> operator[](std::uint32_t number) const {
    const std::size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::span<const Place>(values_).subspan(begin, ends_[number] - begin);
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }
  std::size_t places() const { return values_.size(); }  // of all lists

 private:
  static constexpr std::uint32_t kFree = 0xffffffff;

  static std::uint64_t hash_of(std::span<const Place> list) {
    std::uint64_t hash = 0x9e3779b97f4a7c15u + list.size();
    for (const Place& place : list) {
      hash ^= std::uint64_t{place.position} << 32 | place.stack;
      hash *= 0xbf58476d1ce4e5b9u;
      hash ^= hash >> 29;
    }
    return hash;
  }
  std::size_t slot(std::uint64_t hash) const { return static_cast<std::size_t>(hash) & (table_.size() - 1); }
  void grow() {
    table_.assign(2 * table_.size(), kFree);
    for (std::uint32_t number = 0; number < size(); ++number) {
      std::size_t at = slot(hash_of((*this)[number]));
      while (table_[at] != kFree) at = (at + 1) & (table_.size() - 1);
      table_[at] = number;
    }
  }

  std::vector<Place> values_;
  std::vector<std::size_t> ends_;     // [lists]
  std::vector<std::uint32_t> table_;  // open addressing, a power of two, at most half full
};

}  // namespace coppice::core::grammar
