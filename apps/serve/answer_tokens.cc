#include "answer_tokens.h"

#include <algorithm>
#include <utility>

namespace coppice::serve {
namespace {

Json bytes_json(std::string_view bytes) {
  Json out = Json::array();
  for (const char byte : bytes) out.push_back(static_cast<unsigned char>(byte));
  return out;
}

Json source_json(int source, std::span<const std::string> sources) {
  if (source < 0 || static_cast<std::size_t>(source) >= sources.size()) return nullptr;
  return sources[static_cast<std::size_t>(source)];
}

Json tree_json(const TreeTrace& tree, const Tokenizer& tokenizer, std::span<const std::string> sources) {
  Json nodes = Json::array();
  for (const TreeTrace::Node& node : tree.nodes) {
    Json names = Json::array();
    for (std::size_t d = 0; d < sources.size() && d < 32; ++d)
      if ((node.sources >> d & 1) != 0) names.push_back(sources[d]);
    nodes.push_back({{"text", tokenizer.piece(node.token)},
                     {"parent", node.parent},
                     {"value", node.value},
                     {"sources", std::move(names)},
                     {"taken", node.taken}});
  }
  return {{"nodes", std::move(nodes)},
          {"drawn", tree.drawn == kNoToken ? Json() : Json(tokenizer.piece(tree.drawn))},
          {"wanted", tree.wanted},
          {"costly", tree.costly},
          {"probe", tree.probe}};
}

}  // namespace

AnswerTokens::AnswerTokens(const Tokenizer& tokenizer, bool show_special, Token after)
    : tokenizer_(&tokenizer), texts_(tokenizer, show_special, after) {}

void AnswerTokens::drawn(std::span<const EmittedToken> tokens) {
  for (const EmittedToken& token : tokens) {
    if (tokenizer_->ends_text(token.token)) continue;  // the answer's end is no part of it
    TokenTexts::Piece piece = texts_.next(token.token);
    std::string bytes = piece.bytes.empty() ? tokenizer_->piece(token.token) : std::string(piece.bytes);
    waiting_.push_back({token, std::move(bytes), std::move(piece.text), begin_});
    begin_ += waiting_.back().text.size();
  }
}

std::vector<ShownToken> AnswerTokens::take(std::size_t count) {
  std::vector<ShownToken> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return out;
}

// A token without text waits for the one that brings its character to its end.
std::vector<ShownToken> AnswerTokens::shown(std::size_t bytes) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const ShownToken& token = waiting_[i];
    if (token.begin + token.text.size() > bytes) break;
    if (!token.text.empty()) count = i + 1;
  }
  return take(count);
}

std::vector<ShownToken> AnswerTokens::finish(const std::string& answer) {
  std::size_t count = 0;
  while (count < waiting_.size() && waiting_[count].begin < answer.size()) ++count;
  std::vector<ShownToken> out = take(count);
  // What its last tokens leave of a character, or all of a token that a stop string cuts.
  if (!out.empty()) out.back().text = answer.substr(out.back().begin);
  return out;
}

float finite_logprob(float logprob) {
  constexpr float kLeast = -9999;  // as OpenAI says it
  return logprob >= kLeast ? logprob : kLeast;
}

Json chat_logprob(const ShownToken& token, const Tokenizer& tokenizer) {
  const auto entry = [](const std::string& bytes, float logprob) {
    return Json{{"token", bytes}, {"logprob", finite_logprob(logprob)}, {"bytes", bytes_json(bytes)}};
  };
  Json out = entry(token.bytes, token.emitted.logprob);
  Json& top = out["top_logprobs"] = Json::array();
  for (const auto& [id, logprob] : token.emitted.top) top.push_back(entry(tokenizer.piece(id), logprob));
  return out;
}

Json trace_json(std::span<const ShownToken> tokens, const TreeTrace* tree, const Tokenizer& tokenizer,
                std::span<const std::string> sources) {
  Json list = Json::array();
  for (const ShownToken& token : tokens)
    list.push_back({{"id", token.emitted.token},
                    {"text", token.text},
                    {"source", source_json(token.emitted.source, sources)}});
  return {{"tokens", std::move(list)}, {"tree", tree ? tree_json(*tree, tokenizer, sources) : Json()}};
}

Json speculation_json(const Stats& stats, const AnswerContext& context) {
  Json depths = Json::array();
  const auto& accepted = stats.accepted_at_depth;
  const auto last = std::find_if(accepted.rbegin(), accepted.rend(), [](std::uint64_t n) { return n > 0; });
  for (auto at = accepted.begin(); at != last.base(); ++at) depths.push_back(*at);
  Json sources = Json::array();
  for (const SourceStats& source : stats.sources)
    sources.push_back({{"name", source.name}, {"proposed", source.proposed}, {"accepted", source.accepted}});
  const double guesses = static_cast<double>(stats.guesses);
  return {{"drafters", context.drafters},
          {"policy", context.policy},
          {"tokens", stats.tokens},
          {"passes", stats.cycles},
          {"tokens_per_pass", stats.tokens_per_pass()},
          {"mean_accepted", stats.mean_accepted()},
          {"guesses", stats.guesses},
          {"accepted", stats.accepted},
          {"acceptance", guesses > 0 ? static_cast<double>(stats.accepted) / guesses : 0.0},
          {"tokens_per_second", stats.tokens_per_second()},
          {"decode_seconds", stats.decode_seconds},
          {"prefill_seconds", stats.prefill_seconds},
          {"draft_seconds", stats.draft_seconds},
          {"verify_seconds", stats.verify_seconds},
          {"sample_seconds", stats.sample_seconds},
          {"accepted_per_depth", std::move(depths)},
          {"sources", std::move(sources)}};
}

}  // namespace coppice::serve
