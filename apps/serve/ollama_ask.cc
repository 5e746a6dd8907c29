// Ollama's /api/chat and /api/generate: what they ask, with Ollama's names and defaults.
#include "ollama_ask.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "chat_messages.h"
#include "infill.h"
#include "ollama_writer.h"

namespace coppice::serve {
namespace {

constexpr int kMostTokens = std::numeric_limits<int>::max();

// Of the object `options`. What is not here belongs to another engine, and is refused by name.
void read_options(Fields& fields, Asked& asked, std::optional<int>& context) {
  static const Json kNone = Json::object();
  const Json* json = fields.object("options");
  Fields own(json ? *json : kNone, "options");
  Sampling& sampling = asked.sampling;
  const int predict =
      own.maybe_integer("num_predict", -2, kMostTokens).value_or(-1);  // -1, -2: to the context's end
  if (predict == 0) own.error("num_predict", "must be at least 1, or -1 for as much as there is room for");
  sampling.max_tokens = predict > 0 ? predict : kMostTokens;
  sampling.temperature = own.number("temperature", 0, 100, 0.8F);
  sampling.top_k = std::max(0, own.maybe_integer("top_k", -1, kMostTokens).value_or(40));
  sampling.top_p = own.share("top_p", 0.9F);
  sampling.min_p = own.number("min_p", 0, 1, 0);
  sampling.typical_p = own.share("typical_p", 1);
  sampling.repetition_penalty = own.number("repeat_penalty", 0.01, 100, 1.1F);
  sampling.presence_penalty = own.number("presence_penalty", -2, 2, 0);
  sampling.frequency_penalty = own.number("frequency_penalty", -2, 2, 0);
  sampling.penalty_window = own.maybe_integer("repeat_last_n", -1, kMostTokens).value_or(64);
  read_seed(own, asked);
  read_stop(own, "stop", sampling);
  context = own.maybe_integer("num_ctx", 2, kMostTokens);
  if (const auto end = own.finish(); !end) fields.error(end.error());
}

}  // namespace

tl::expected<void, ApiError> OllamaAsk::read(const Json& body) {
  Fields fields(body);
  model = fields.text("model");
  stream = fields.boolean("stream", true);
  speculation = read_speculation(fields);
  read_options(fields, asked_, context_);
  asked_.format = read_ollama_format(fields);
  if (chats_) {
    conversation_.messages = read_ollama_messages(fields);
    conversation_.tools = read_tool_list(fields);
    asked_.show_special = conversation_.tools.offered();
  } else {
    read_prompt(fields);
  }
  fields.refuse("keep_alive", "a model stays until its memory is needed; leave it out");
  if (fields.boolean("think", false))
    fields.error("think", "thoughts are not taken apart from the answer; leave it out, or set it to false");
  if (fields.has("think")) conversation_.variables = R"({"enable_thinking":false})";
  if (conversation_.tools.offered() && asked_.format.kind != OutputFormat::Kind::free)
    fields.error("format", "leaves no room for calls of tools; leave one of them out");
  return fields.finish();
}

void OllamaAsk::read_prompt(Fields& fields) {
  prompt_ = fields.text("prompt");
  if (prompt_.empty()) fields.error("prompt", "is missing");
  suffix_ = fields.maybe_text("suffix");
  raw_ = fields.boolean("raw", false);
  system_ = fields.text("system");
  if (raw_ && !system_.empty()) fields.error("system", "a raw prompt has no system message");
  fields.refuse("template", "the model's own chat template is used; leave it out, or set raw to true");
  fields.refuse("context", "send the earlier turns to /api/chat instead");
  fields.refuse("images", "images are not possible, only text");
}

// A model without a template goes on with the prompt as it is.
ApiResult<ChatPrompt> OllamaAsk::prompt(const Model& loaded) const {
  if (chats_) return make_chat_prompt(conversation_, loaded);
  const Tokenizer& tokenizer = loaded.tokenizer();
  if (suffix_) {
    auto tokens = infill_prompt(tokenizer, prompt_, *suffix_);
    if (tokens) return ChatPrompt{std::move(*tokens), {}};
    return tl::unexpected(invalid("suffix", "suffix: this model was not trained to fill in the middle"));
  }
  if (raw_ || (system_.empty() && !loaded.chat_template())) return ChatPrompt{tokenizer.encode(prompt_), {}};
  Conversation conversation = conversation_;
  if (!system_.empty()) conversation.messages.push_back({"system", system_});
  conversation.messages.push_back({"user", prompt_});
  return make_chat_prompt(conversation, loaded);
}

ApiResult<std::vector<Request>> OllamaAsk::requests(const Model& loaded) const {
  auto made = prompt(loaded);
  if (!made) return tl::unexpected(made.error());
  auto requests = make_requests(asked_, *this, {std::move(made->tokens)}, loaded);
  if (!requests || !context_) return requests;
  Request& request = requests->front();
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  if (length >= *context_)
    return tl::unexpected(
        invalid("options.num_ctx", fmt::format("options.num_ctx: the prompt has {} tokens and the "
                                               "context of {} holds no answer",
                                               length, *context_)));
  request.sampling.max_tokens =
      static_cast<int>(std::min<std::int64_t>(request.sampling.max_tokens, *context_ - length));
  return requests;
}

std::unique_ptr<AnswerWriter> OllamaAsk::writer(const Model& loaded, AnswerContext context) const {
  OllamaStyle style;
  style.stream = stream;
  style.chats = chats_;
  style.trace = speculation && speculation->trace;
  style.stats = speculation && speculation->stats;
  CallStyle calls;
  calls.tools = conversation_.tools;
  if (calls.tools.offered()) calls.family = &family_of(conversation_, loaded);
  return std::make_unique<OllamaWriter>(style, loaded, std::move(context), calls);
}

ApiResult<std::unique_ptr<Ask>> parse_ollama(bool chats, const Json& body) {
  auto ask = std::make_unique<OllamaAsk>(chats);
  if (const auto read = ask->read(body); !read) return tl::unexpected(read.error());
  return ask;
}

}  // namespace coppice::serve
