#include <algorithm>
#include <utility>

#include "openai_completions.h"

namespace coppice::serve {
namespace {

std::size_t characters(std::string_view text) {
  const auto begins = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins));
}

Json part(std::string_view text, Json logprobs) {
  return {{"text", text}, {"logprobs", std::move(logprobs)}};
}

Json no_logprobs() {
  Json out;
  for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    out[name] = Json::array();
  return out;
}

// The first token of a text follows nothing: OpenAI's lists have null there.
Json first_logprobs(const std::string& piece) {
  return {{"tokens", Json::array({piece})},
          {"token_logprobs", Json::array({nullptr})},
          {"top_logprobs", Json::array({nullptr})},
          {"text_offset", Json::array({0})}};
}

}  // namespace

CompletionWriter::CompletionWriter(const OpenAiStyle& style, const Model& model, AnswerContext given,
                                   const std::vector<std::string>& echoes, const std::vector<Scored>& scored)
    : OpenAiWriter(style, model, std::move(given)), choices_(context().prompt_tokens.size()) {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const std::size_t prompt = i / static_cast<std::size_t>(style.n);
    if (prompt < scored.size()) {
      scored_.push_back(scored[prompt]);
      choices_[i].logprobs = first_logprobs(tokenizer().piece(scored[prompt].first));
    }
    if (prompt < echoes.size()) choices_[i].text = echoes[prompt];
    choices_[i].characters = characters(choices_[i].text);
  }
}

int CompletionWriter::forced(int index) const {
  return scored_.empty() ? 0 : scored_[static_cast<std::size_t>(index)].forced;
}

void CompletionWriter::add_logprobs(Choice& choice, std::span<const ShownToken> tokens, Json& out) const {
  if (!style().logprobs) return;
  if (out.is_null()) out = no_logprobs();
  for (const ShownToken& token : tokens) {
    const float logprob = finite_logprob(token.emitted.logprob);
    Json top = Json::object();
    for (const auto& [id, other] : token.emitted.top) top[tokenizer().piece(id)] = finite_logprob(other);
    top[token.bytes] = logprob;
    out["tokens"].push_back(token.bytes);
    out["token_logprobs"].push_back(logprob);
    out["top_logprobs"].push_back(std::move(top));
    out["text_offset"].push_back(choice.characters);
    choice.characters += characters(token.text);
  }
}

std::vector<Json> CompletionWriter::opening(int index) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  if (choice.text.empty() && choice.logprobs.is_null()) return {};
  return {part(choice.text, std::exchange(choice.logprobs, nullptr))};
}

std::vector<Json> CompletionWriter::add(int index, std::string_view text, std::span<const ShownToken> tokens,
                                        bool) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  if (!style().stream) {
    add_logprobs(choice, tokens, choice.logprobs);
    choice.text += text;
    return {};
  }
  if (text.empty() && (tokens.empty() || !style().logprobs)) return {};
  Json logprobs;
  add_logprobs(choice, tokens, logprobs);
  return {part(text, std::move(logprobs))};
}

Json CompletionWriter::nothing(int) { return part("", nullptr); }

Json CompletionWriter::whole(int index) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  return part(choice.text, std::move(choice.logprobs));
}

}  // namespace coppice::serve
