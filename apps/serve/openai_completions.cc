// /v1/completions: text that goes on.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "infill.h"
#include "openai_ask.h"

namespace coppice::serve {
namespace {

constexpr int kMostLogprobs = 20;
constexpr int kDefaultTokens = 16;  // OpenAI's

// A prompt as it was given: a text, or tokens.
struct Prompt {
  std::string text;
  std::vector<Token> tokens;  // empty: it is a text
};

std::optional<std::vector<Token>> read_tokens(const Json& json) {
  std::vector<Token> tokens;
  for (const Json& element : json) {
    const auto token = whole(element);
    if (!token || *token < 0 || *token > std::numeric_limits<Token>::max()) return std::nullopt;
    tokens.push_back(static_cast<Token>(*token));
  }
  return tokens;
}

std::optional<Prompt> read_prompt(const Json& json) {
  if (json.is_string()) return Prompt{json.get<std::string>(), {}};
  if (!json.is_array() || json.empty()) return std::nullopt;
  auto tokens = read_tokens(json);
  if (!tokens) return std::nullopt;
  return Prompt{"", std::move(*tokens)};
}

std::vector<Prompt> read_prompts(Fields& fields) {
  std::vector<Prompt> prompts;
  const Json* json = fields.find("prompt");
  if (!json) {
    fields.error("prompt", "is missing");
    return prompts;
  }
  const bool several = json->is_array() && !json->empty() && !json->front().is_number();
  if (several && json->size() > static_cast<std::size_t>(kMostRequests)) {
    fields.error("prompt", fmt::format("at most {} prompts are possible", kMostRequests));
    return prompts;
  }
  const auto add = [&](const Json& one) {
    if (auto prompt = read_prompt(one)) prompts.push_back(std::move(*prompt));
    else fields.error("prompt", "must be a string, a list of strings, a list of token ids or a list of such lists");
  };
  if (!several) add(*json);
  else
    for (const Json& one : *json) add(one);
  return prompts;
}

class CompletionWriter : public OpenAiWriter {
 public:
  CompletionWriter(const OpenAiStyle& style, const Model& model, AnswerContext context,
                   std::vector<std::string> echoes)
      : OpenAiWriter(style, model, std::move(context)), choices_(this->context().prompt_tokens.size()) {
    for (std::size_t i = 0; i < choices_.size() && !echoes.empty(); ++i)
      choices_[i].text = echoes[i / static_cast<std::size_t>(style.n)];
    for (Choice& choice : choices_) choice.characters = characters(choice.text);
  }

 private:
  struct Choice {
    std::string text;
    std::size_t characters = 0;  // of it and of what was streamed: offsets of tokens
    Json logprobs;
  };

  static std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }

  Choice& choice(int index) { return choices_[static_cast<std::size_t>(index)]; }

  static Json part(std::string_view text, Json logprobs) { return {{"text", text}, {"logprobs", std::move(logprobs)}}; }

  // OpenAI's four lists, added to `out`.
  void add_logprobs(Choice& choice, std::span<const ShownToken> tokens, Json& out) {
    if (!style().logprobs || (tokens.empty() && !out.is_null())) return;
    if (out.is_null())
      for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) out[name] = Json::array();
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

  std::vector<Json> opening(int index) override {
    const std::string& echo = choice(index).text;
    return echo.empty() ? std::vector<Json>() : std::vector<Json>{part(echo, nullptr)};
  }

  std::vector<Json> add(int index, std::string_view text, std::span<const ShownToken> tokens, bool last) override {
    Choice& own = choice(index);
    Json fresh;
    add_logprobs(own, tokens, style().stream ? fresh : own.logprobs);
    if (!style().stream) {
      own.text += text;
      return {};
    }
    if (text.empty() && tokens.empty()) return {};
    if (last && text.empty() && !style().logprobs) return {};
    return {part(text, std::move(fresh))};
  }

  Json nothing(int) override { return part("", nullptr); }

  Json whole(int index) override { return part(choice(index).text, std::move(choice(index).logprobs)); }

  std::vector<Choice> choices_;
};

class CompletionAsk : public Ask {
 public:
  ApiResult<std::vector<Request>> requests(const Model& model) const override {
    std::vector<std::vector<Token>> prompts;
    for (const Prompt& prompt : prompts_) {
      auto tokens = tokens_of(prompt, model);
      if (!tokens) return tl::unexpected(tokens.error());
      prompts.push_back(std::move(*tokens));
    }
    return make_requests(common_.asked, *this, std::move(prompts), model);
  }

  std::unique_ptr<AnswerWriter> writer(const Model& model, AnswerContext context) const override {
    OpenAiStyle style = style_of(common_, *this);
    style.object = style.chunk_object = "text_completion";
    std::vector<std::string> echoes;
    for (const Prompt& prompt : prompts_)
      if (echo_) echoes.push_back(prompt.tokens.empty() ? prompt.text : model.tokenizer().decode(prompt.tokens));
    return std::make_unique<CompletionWriter>(style, model, std::move(context), std::move(echoes));
  }

  tl::expected<void, ApiError> read(const Json& body) {
    Fields fields(body);
    common_ = read_common(fields, *this);
    Sampling& sampling = common_.asked.sampling;
    prompts_ = read_prompts(fields);
    suffix_ = fields.maybe_text("suffix");
    echo_ = fields.boolean("echo", false);
    sampling.max_tokens =
        fields.maybe_integer("max_tokens", 1, std::numeric_limits<int>::max()).value_or(kDefaultTokens);
    sampling.logprobs = fields.maybe_integer("logprobs", 0, kMostLogprobs).value_or(-1);
    common_.asked.format = read_format(fields);
    const int n = common_.asked.n;
    if (fields.maybe_integer("best_of", 1, kMostChoices).value_or(n) != n)
      fields.error("best_of", "must be n: every answer that is made is given");
    if (echo_ && sampling.logprobs >= 0)
      fields.error("echo", "log-probabilities of a prompt are not made; leave echo or logprobs out");
    if (prompts_.size() * static_cast<std::size_t>(n) > static_cast<std::size_t>(kMostRequests))
      fields.error("n", fmt::format("prompts times n may be at most {}", kMostRequests));
    return fields.finish();
  }

 private:
  ApiResult<std::vector<Token>> tokens_of(const Prompt& prompt, const Model& model) const {
    const Tokenizer& tokenizer = model.tokenizer();
    for (const Token token : prompt.tokens)
      if (token >= tokenizer.size())
        return tl::unexpected(invalid("prompt", fmt::format("prompt: token {} is not in the vocabulary; ids go from 0 to {}",
                                                            token, tokenizer.size() - 1)));
    if (!suffix_) return prompt.tokens.empty() ? tokenizer.encode(prompt.text) : prompt.tokens;
    const std::string before = prompt.tokens.empty() ? prompt.text : tokenizer.decode(prompt.tokens);
    auto tokens = infill_prompt(tokenizer, before, *suffix_);
    if (tokens) return std::move(*tokens);
    return tl::unexpected(invalid("suffix", "suffix: this model was not trained to fill in the middle; its vocabulary "
                                            "has no tokens for that"));
  }

  OpenAiCommon common_;
  std::vector<Prompt> prompts_;
  std::optional<std::string> suffix_;
  bool echo_ = false;
};

}  // namespace

ApiResult<std::unique_ptr<Ask>> parse_completions(const Json& body) {
  auto ask = std::make_unique<CompletionAsk>();
  if (const auto read = ask->read(body); !read) return tl::unexpected(read.error());
  return ask;
}

}  // namespace coppice::serve
