// Random walks through a grammar's masks, for the fuzz targets of the grammar room.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "base/check.h"
#include "grammar/matcher.h"

namespace coppice::core::grammar {

inline std::shared_ptr<const TokenTrie> fuzz_tokens() {
  static const auto kTokens = [] {
    TokenBytesList list;
    for (int byte = 0; byte < 256; ++byte) list.bytes.emplace_back(1, static_cast<char>(byte));
    for (const char* piece : {"{\"", "\":", "\", \"", "}}", "true", "null", "ab", "aaaa", "12", "\n  "})
      list.bytes.emplace_back(piece);
    list.bytes.emplace_back();
    list.ends = {static_cast<Token>(list.bytes.size()) - 1};
    return std::make_shared<const TokenTrie>(list);
  }();
  return kTokens;
}

inline void walk(const std::shared_ptr<const Compiled>& grammar, std::uint64_t random) {
  const auto tokens = fuzz_tokens();
  constexpr std::size_t kLongest = 40;
  // A mask may take a fraction of a second (Matcher::kMostWork): a few of those are enough.
  const auto over = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (int round = 0; round < 3; ++round) {
    Matcher matcher(grammar, tokens, tokens->vocab());
    std::vector<Token> text;
    while (text.size() < kLongest && std::chrono::steady_clock::now() < over) {
      const State state = matcher.at(text, {});
      const auto mask = matcher.mask(state);
      if (mask.empty()) break;  // too many readings
      const std::vector<std::uint32_t> words(mask.begin(), mask.end());
      std::vector<Token> allowed;
      for (Token token = 0; token < tokens->vocab(); ++token) {
        const bool may = (words[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
        COPPICE_CHECK(may == matcher.allows(state, token));
        if (may) allowed.push_back(token);
      }
      COPPICE_CHECK(!allowed.empty());  // every byte is a token, so there is always a way on
      random = random * 6364136223846793005u + 1442695040888963407u;
      text.push_back(allowed[(random >> 33) % allowed.size()]);
      if (tokens->ends_text(text.back())) break;
    }
  }
}

}  // namespace coppice::core::grammar
