#include <random>
#include <utility>

#include "openai_chat.h"

namespace coppice::serve {

std::string call_id() {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 generator{std::random_device{}()};
  std::uniform_int_distribution<std::size_t> letter(0, kLetters.size() - 1);
  std::string id;
  for (int i = 0; i < 9; ++i) id += kLetters[letter(generator)];
  return id;
}

ToolCallReader CallStyle::reader() const {
  ToolCallOptions options;
  for (const Tool& tool : tools.list) options.names.push_back(tool.name);
  options.parallel = tools.parallel;
  options.inside = tools.forced();
  return {*family, std::move(options)};
}

ChatWriter::ChatWriter(const OpenAiStyle& style, const Model& model, AnswerContext given,
                       const CallStyle& calls)
    : OpenAiWriter(style, model, std::move(given)), named_(calls.tools.choice == Tools::Choice::named) {
  for (std::size_t i = 0; i < context().prompt_tokens.size(); ++i) {
    Choice& choice = choices_.emplace_back();
    if (calls.family) choice.reader.emplace(calls.reader());
  }
}

std::vector<Json> ChatWriter::opening(int) {
  return {Json{{"delta", {{"role", "assistant"}, {"content", ""}}}, {"logprobs", nullptr}}};
}

// OpenAI says "stop" where the function was chosen by the caller.
bool ChatWriter::called_tools(int index) const {
  const Choice& choice = choices_[static_cast<std::size_t>(index)];
  return !named_ && choice.reader && choice.reader->calls() > 0;
}

std::vector<CallPiece> ChatWriter::pieces(Choice& choice, std::string_view text, bool last) const {
  if (!choice.reader) {
    if (text.empty()) return {};
    return {CallPiece{CallPiece::Kind::content, 0, std::string(text)}};
  }
  std::vector<CallPiece> out = choice.reader->push(text);
  if (last)
    for (CallPiece& piece : choice.reader->finish()) out.push_back(std::move(piece));
  return out;
}

std::vector<Json> ChatWriter::add(int index, std::string_view text, std::span<const ShownToken> tokens,
                                  bool last) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  if (style().logprobs)
    for (const ShownToken& token : tokens) choice.logprobs.push_back(chat_logprob(token, tokenizer()));
  std::vector<Json> out;
  for (const CallPiece& piece : pieces(choice, text, last)) {
    Json change = delta(choice, piece);
    if (style().stream) out.push_back(part(choice, std::move(change)));
  }
  return out;
}

Json ChatWriter::delta(Choice& choice, const CallPiece& piece) {
  if (piece.kind == CallPiece::Kind::content) {
    if (!style().stream) choice.content += piece.text;
    return {{"content", piece.text}};
  }
  Json call = {{"index", piece.index}};
  if (piece.kind == CallPiece::Kind::call) {
    choice.calls.push_back({call_id(), piece.text, ""});
    call["id"] = choice.calls.back().id;
    call["type"] = "function";
    call["function"] = {{"name", piece.text}, {"arguments", ""}};
  } else {
    if (!style().stream) choice.calls.back().arguments += piece.text;
    call["function"] = {{"arguments", piece.text}};
  }
  return {{"tool_calls", Json::array({std::move(call)})}};
}

// {"content": [...], "refusal": null}, or null where nobody asked.
Json ChatWriter::take_logprobs(Choice& choice) {
  if (choice.logprobs.is_null()) return nullptr;
  return {{"content", std::exchange(choice.logprobs, nullptr)}, {"refusal", nullptr}};
}

Json ChatWriter::part(Choice& choice, Json delta) {
  return {{"delta", std::move(delta)}, {"logprobs", take_logprobs(choice)}};
}

Json ChatWriter::nothing(int index) {
  return part(choices_[static_cast<std::size_t>(index)], Json::object());
}

Json ChatWriter::whole(int index) {
  Choice& choice = choices_[static_cast<std::size_t>(index)];
  Json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
  if (!choice.calls.empty()) {
    if (choice.content.empty()) message["content"] = nullptr;
    Json& calls = message["tool_calls"] = Json::array();
    for (const ToolCall& call : choice.calls)
      calls.push_back({{"id", call.id},
                       {"type", "function"},
                       {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  Json logprobs = take_logprobs(choice);
  if (style().logprobs && logprobs.is_null()) logprobs = {{"content", Json::array()}, {"refusal", nullptr}};
  return {{"message", std::move(message)}, {"logprobs", std::move(logprobs)}};
}

}  // namespace coppice::serve
