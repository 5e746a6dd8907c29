// /v1/completions: text that goes on.
#include "openai_completions.h"

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
  const auto add = [&](const Json& one, const std::string& place = "prompt") {
    if (auto prompt = read_prompt(one))
      prompts.push_back(std::move(*prompt));
    else
      fields.error(invalid("prompt", fmt::format("{} must be a string or a list of token ids, 0 and up, with "
                                                 "one at least; prompt may also be a list of such",
                                                 place)));
  };
  const Json* json = fields.find("prompt");
  if (!json) {
    fields.error("prompt", "is missing");
  } else if (!json->is_array() || json->empty() || json->front().is_number()) {
    add(*json);
  } else if (json->size() > static_cast<std::size_t>(kMostRequests)) {
    fields.error("prompt", fmt::format("at most {} prompts are possible", kMostRequests));
  } else {
    for (std::size_t i = 0; i < json->size(); ++i) add((*json)[i], fmt::format("prompt[{}]", i));
  }
  return prompts;
}

class CompletionAsk : public Ask {
 public:
  ApiResult<std::vector<Request>> requests(const Model& loaded) const override {
    std::vector<std::vector<Token>> prompts;
    for (const Prompt& prompt : prompts_) {
      auto tokens = tokens_of(prompt, loaded.tokenizer());
      if (!tokens) return tl::unexpected(tokens.error());
      prompts.push_back(std::move(*tokens));
    }
    auto requests = make_requests(common_.asked, *this, std::move(prompts), loaded);
    if (!requests || !scores()) return requests;
    for (Request& request : *requests)
      if (const auto right = score(request, loaded.tokenizer()); !right) return tl::unexpected(right.error());
    return requests;
  }

  std::unique_ptr<AnswerWriter> writer(const Model& loaded, AnswerContext context) const override {
    OpenAiStyle style = style_of(common_, *this);
    style.object = style.chunk_object = "text_completion";
    const Tokenizer& tokenizer = loaded.tokenizer();
    std::vector<std::string> echoes;
    std::vector<Scored> scored;
    for (const Prompt& prompt : prompts_) {
      if (!echo_) break;
      const auto tokens = tokens_of(prompt, tokenizer);
      if (scores() && tokens) {
        scored.push_back({tokens->front(), static_cast<int>(tokens->size()) - 1});
        echoes.push_back(TokenTexts(tokenizer).next(tokens->front()).text);
      } else {
        echoes.push_back(prompt.tokens.empty() ? prompt.text : tokenizer.decode(prompt.tokens));
      }
    }
    return std::make_unique<CompletionWriter>(style, loaded, std::move(context), echoes, scored);
  }

  tl::expected<void, ApiError> read(const Json& body) {
    Fields fields(body);
    common_ = read_common(fields, *this);
    Asked& asked = common_.asked;
    prompts_ = read_prompts(fields);
    suffix_ = fields.maybe_text("suffix");
    echo_ = fields.boolean("echo", false);
    asked.sampling.logprobs = fields.maybe_integer("logprobs", 0, kMostLogprobs).value_or(-1);
    answer_tokens_ = fields.maybe_integer("max_tokens", scores() ? 0 : 1, std::numeric_limits<int>::max())
                         .value_or(kDefaultTokens);
    asked.sampling.max_tokens = std::max(1, answer_tokens_);
    asked.format = read_format(fields);
    if (fields.maybe_integer("best_of", 1, kMostChoices).value_or(asked.n) != asked.n)
      fields.error("best_of", "must be n: every answer that is made is given");
    if (prompts_.size() * static_cast<std::size_t>(asked.n) > static_cast<std::size_t>(kMostRequests))
      fields.error("n", fmt::format("prompts times n may be at most {}", kMostRequests));
    if (scores() &&
        (suffix_ || !asked.sampling.stop.empty() || asked.format.kind != OutputFormat::Kind::free))
      fields.error(
          "echo",
          "with logprobs the prompt is part of the answer: suffix, stop and what an answer must look "
          "like cannot go together with that");
    return fields.finish();
  }

 private:
  // The prompt's own log-probabilities are wanted.
  bool scores() const { return echo_ && common_.asked.sampling.logprobs >= 0; }

  // The prompt behind its first token becomes the beginning of the answer.
  tl::expected<void, ApiError> score(Request& request, const Tokenizer& tokenizer) const {
    std::vector<Token>& prompt = request.prompt;
    const auto ends = [&](Token token) { return tokenizer.ends_text(token); };
    if (std::any_of(prompt.begin() + 1, prompt.end(), ends))
      return tl::unexpected(
          invalid("prompt", "prompt: with echo and logprobs it may have no end of text inside"));
    request.forced.assign(prompt.begin() + 1, prompt.end());
    prompt.resize(1);
    const auto total = static_cast<std::int64_t>(request.forced.size()) + answer_tokens_;
    if (total == 0)
      return tl::unexpected(invalid("max_tokens",
                                    "max_tokens: the prompt is one token and no answer is wanted: there "
                                    "is nothing to do"));
    request.sampling.max_tokens =
        static_cast<int>(std::min<std::int64_t>(total, std::numeric_limits<int>::max()));
    return {};
  }

  ApiResult<std::vector<Token>> tokens_of(const Prompt& prompt, const Tokenizer& tokenizer) const {
    for (const Token token : prompt.tokens)
      if (token >= tokenizer.size())
        return tl::unexpected(
            invalid("prompt", fmt::format("prompt: token {} is not in the vocabulary; ids go from 0 to {}",
                                          token, tokenizer.size() - 1)));
    if (!suffix_) return prompt.tokens.empty() ? tokenizer.encode(prompt.text) : prompt.tokens;
    const std::string before = prompt.tokens.empty() ? prompt.text : tokenizer.decode(prompt.tokens);
    auto tokens = infill_prompt(tokenizer, before, *suffix_);
    if (tokens) return std::move(*tokens);
    return tl::unexpected(invalid("suffix",
                                  "suffix: this model was not trained to fill in the middle; its vocabulary "
                                  "has no tokens for that"));
  }

  OpenAiCommon common_;
  std::vector<Prompt> prompts_;
  std::optional<std::string> suffix_;
  bool echo_ = false;
  int answer_tokens_ = kDefaultTokens;
};

}  // namespace

ApiResult<std::unique_ptr<Ask>> parse_completions(const Json& body) {
  auto ask = std::make_unique<CompletionAsk>();
  if (const auto read = ask->read(body); !read) return tl::unexpected(read.error());
  return ask;
}

}  // namespace coppice::serve
