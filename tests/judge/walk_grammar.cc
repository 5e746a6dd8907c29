// The grammar room as a filter, for grammar_judge.py. Each line of stdin is a JSON object:
//   {"schema": ..., "draws": 20, "seed": 1, "texts": ["...", ...]}
// and gets one on stdout: {"error": "..."} or {"drawn": ["...", ...], "accepted": [true, ...]}.
// A drawn text is made token by token: one of those that the mask allows, at random; once the text is long,
// one of those after which the least is left to write.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"

namespace coppice::core::grammar {
namespace {

using nlohmann::json;

constexpr std::size_t kLong = 60;     // tokens; then it is steered to the end
constexpr std::size_t kMost = 20000;  // tokens; no text needs nearly as many

std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The bytes, and pieces as a tokenizer makes them: over the borders of keys, strings and numbers.
std::shared_ptr<const TokenTrie> vocabulary() {
  TokenBytesList list;
  for (int byte = 0; byte < 256; ++byte) list.bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* piece : {"{\"",  "\":",      "\": ",         "\": \"",
                            "\",",  "\", \"",   "\"}",          "}}",
                            "},",   "}, {\"",   "]}",           "[\"",
                            "[{\"", "\"]",      "[]",           "{}",
                            ", ",   ": ",       "\n  ",         "\n    ",
                            "true", "false",    "null",         "12",
                            "20",   "19",       "00",           "-1",
                            "0.",   ".5",       "e-",           "the",
                            "name", "id",       " a",           "er",
                            "on",   "in",       "st",           "ab",
                            "xyz",  "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                            "\\n",  "\\u00",    "\\\""})
    list.bytes.emplace_back(piece);
  list.bytes.emplace_back();
  list.ends = {static_cast<Token>(list.bytes.size()) - 1};
  return std::make_shared<const TokenTrie>(list);
}

// The one after which the fewest bytes are missing; of equals the first.
Token nearest_to_the_end(Matcher& matcher, State state, std::span<const Token> allowed,
                         const TokenTrie& trie) {
  Token best = allowed[0];
  std::uint64_t least = ~std::uint64_t{0};
  for (const Token token : allowed) {
    const std::uint64_t missing = trie.ends_text(token) ? 0 : 1 + matcher.least(matcher.next(state, token));
    if (missing < least) best = token, least = missing;
  }
  return best;
}

std::string draw(const std::shared_ptr<const Compiled>& grammar, const std::shared_ptr<const TokenTrie>& trie,
                 std::uint64_t seed) {
  Matcher matcher(grammar, trie, trie->vocab());
  std::vector<Token> tokens, allowed;
  std::string text;
  while (tokens.size() < kMost) {
    const State state = matcher.at(tokens, {});
    const auto mask = matcher.mask(state);
    allowed.clear();
    for (Token token = 0; token < trie->vocab(); ++token)
      if (!mask.empty() && (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0)
        allowed.push_back(token);
    COPPICE_CHECK(!allowed.empty());
    const Token token = tokens.size() < kLong ? allowed[next_random(seed) % allowed.size()]
                                              : nearest_to_the_end(matcher, state, allowed, *trie);
    if (trie->ends_text(token)) return text;
    tokens.push_back(token);
    text += trie->bytes(token);
  }
  COPPICE_CHECK(false);
}

json answer(const json& question, const std::shared_ptr<const TokenTrie>& trie) {
  auto compiled = compile_json_schema(question["schema"].get<std::string>());
  if (!compiled) return {{"error", compiled.error().message}};
  const auto grammar = std::make_shared<const Compiled>(std::move(*compiled));
  json drawn = json::array(), accepted = json::array();
  for (int i = 0; i < question["draws"].get<int>(); ++i)
    drawn.push_back(
        draw(grammar, trie, question["seed"].get<std::uint64_t>() * 1000 + static_cast<std::uint64_t>(i)));
  Machine machine(grammar);
  for (const json& text : question["texts"])
    accepted.push_back(machine.may_end(machine.walk(machine.start(), text.get<std::string>())));
  return {{"drawn", drawn}, {"accepted", accepted}};
}

}  // namespace
}  // namespace coppice::core::grammar

int main() {
  const auto trie = coppice::core::grammar::vocabulary();
  std::string line;
  while (std::getline(std::cin, line))
    std::cout << coppice::core::grammar::answer(nlohmann::json::parse(line), trie).dump() << std::endl;
}
