// /v1/chat/completions: conversations.
#include "openai_chat.h"

#include <limits>

#include "chat_messages.h"
#include "chat_prompt.h"
#include "openai_ask.h"

namespace coppice::serve {
namespace {

constexpr int kMostLogprobs = 20;

class ChatAsk : public Ask {
 public:
  ApiResult<std::vector<Request>> requests(const Model& loaded) const override {
    auto prompt = make_chat_prompt(conversation_, loaded);
    if (!prompt) return tl::unexpected(prompt.error());
    Asked asked = common_.asked;
    if (prompt->format.kind != OutputFormat::Kind::free) asked.format = prompt->format;
    return make_requests(asked, *this, {std::move(prompt->tokens)}, loaded);
  }

  std::unique_ptr<AnswerWriter> writer(const Model& loaded, AnswerContext context) const override {
    OpenAiStyle style = style_of(common_, *this);
    style.object = "chat.completion";
    style.chunk_object = "chat.completion.chunk";
    CallStyle calls;
    calls.tools = conversation_.tools;
    if (calls.tools.offered()) calls.family = &family_of(conversation_, loaded);
    return std::make_unique<ChatWriter>(style, loaded, std::move(context), calls);
  }

  tl::expected<void, ApiError> read(const Json& body) {
    Fields fields(body);
    common_ = read_common(fields, *this);
    conversation_.messages = read_messages(fields);
    conversation_.tools = read_tools(fields);
    conversation_.variables = read_template_variables(fields);
    common_.asked.format = read_format(fields);
    common_.asked.show_special = conversation_.tools.offered();
    read_lengths(fields);
    read_logprobs(fields);
    read_others(fields);
    if (conversation_.tools.offered() && common_.asked.format.kind != OutputFormat::Kind::free)
      fields.error(common_.asked.format.param,
                   "leaves no room for calls of tools; set tool_choice to \"none\", or leave it out");
    return fields.finish();
  }

 private:
  void read_lengths(Fields& fields) {
    constexpr int kMost = std::numeric_limits<int>::max();  // the context ends an answer too
    const auto older = fields.maybe_integer("max_tokens", 1, kMost);
    const auto newer = fields.maybe_integer("max_completion_tokens", 1, kMost);
    if (older && newer && *older != *newer)
      fields.error("max_tokens", "and max_completion_tokens are the same limit and have different values");
    common_.asked.sampling.max_tokens = newer.value_or(older.value_or(kMost));
  }

  void read_logprobs(Fields& fields) {
    const bool wanted = fields.boolean("logprobs", false);
    const auto top = fields.maybe_integer("top_logprobs", 0, kMostLogprobs);
    if (top && !wanted) fields.error("top_logprobs", "needs logprobs to be true");
    common_.asked.sampling.logprobs = wanted ? top.value_or(0) : -1;
  }

  // Of OpenAI's own models and service.
  static void read_others(Fields& fields) {
    if (fields.boolean("store", false)) fields.error("store", "nothing is stored here; leave it out");
    fields.choice("service_tier", {"auto", "default"});
    const Json* modalities = fields.array("modalities");
    if (modalities && *modalities != Json::array({"text"})) fields.error("modalities", "must be [\"text\"]");
    fields.refuse("reasoning_effort",
                  "is not possible; what a model's template offers is set with chat_template_kwargs");
    fields.refuse("audio", "audio is not possible, only text");
    fields.refuse("prediction", "is not needed: what repeats the prompt is guessed anyway");
    fields.refuse("metadata", "nothing is stored here; leave it out");
    fields.refuse("verbosity", "is not possible");
    fields.refuse("web_search_options", "searching is not possible");
  }

  OpenAiCommon common_;
  Conversation conversation_;
};

}  // namespace

ApiResult<std::unique_ptr<Ask>> parse_chat(const Json& body) {
  auto ask = std::make_unique<ChatAsk>();
  if (const auto read = ask->read(body); !read) return tl::unexpected(read.error());
  return ask;
}

}  // namespace coppice::serve
