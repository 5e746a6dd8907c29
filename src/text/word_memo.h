// The words of one text and what they became, for as long as the text is encoded: most words of a text come
// again, and copying their tokens is several times faster than merging them anew.
#pragma once

#include <coppice/token.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/flat_map.h"

namespace coppice::core {

class WordMemo {
 public:
  // Short texts are not worth a table.
  explicit WordMemo(std::size_t text_bytes) : entries_(text_bytes < kWorthIt ? 0 : kEntries) {}

  // Appends the tokens that `word` became; false, and nothing happens, if it is not known.
  bool recall(std::string_view word, std::vector<Token>& out) const {
    if (entries_.empty()) return false;
    const Entry& entry = entries_[hash_bytes(word) % kEntries];
    if (entry.word != word || entry.word.empty()) return false;
    for (std::size_t i = 0; i < entry.count; ++i) out.push_back(out[entry.begin + i]);
    return true;
  }

  // What stands in out from `begin` on is what `word` became; it must stay there, and the word's bytes too.
  void remember(std::string_view word, std::size_t begin, const std::vector<Token>& out) {
    if (entries_.empty() || word.size() > kLongest) return;
    entries_[hash_bytes(word) % kEntries] = {word, begin, out.size() - begin};
  }

 private:
  static constexpr std::size_t kEntries = 8192, kWorthIt = 16384, kLongest = 64;
  struct Entry {
    std::string_view word{};
    std::size_t begin = 0, count = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace coppice::core
