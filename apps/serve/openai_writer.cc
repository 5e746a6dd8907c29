#include "openai_writer.h"

#include <algorithm>
#include <utility>

namespace coppice::serve {
namespace {

std::string server_event(const Json& json) { return "data: " + dump(json) + "\n\n"; }

const char* finish_reason(StopReason stop, bool called) {
  if (stop == StopReason::end_of_text || stop == StopReason::stop_string)
    return called ? "tool_calls" : "stop";
  return "length";  // max_tokens, context_full, timed_out: stop_reason says which
}

}  // namespace

OpenAiWriter::OpenAiWriter(const OpenAiStyle& style, const Model& model, AnswerContext context)
    : style_(style), model_(model), context_(std::move(context)) {
  for (std::size_t i = 0; i < context_.prompt_tokens.size(); ++i) {
    const Token after = i < context_.last_prompt_tokens.size() ? context_.last_prompt_tokens[i] : kNoToken;
    progress_.push_back({AnswerTokens(model_.tokenizer(), style_.show_special, after), 0, {}, {}, 0});
  }
}

const char* OpenAiWriter::content_type() const {
  return style_.stream ? "text/event-stream" : "application/json";
}

std::string OpenAiWriter::begin() {
  std::string out;
  for (int i = 0; style_.stream && i < static_cast<int>(progress_.size()); ++i)
    out += chunks(i, opening(i), nullptr);
  return out;
}

std::vector<ShownToken> OpenAiWriter::follow(Progress& progress, const Event& event) {
  progress.bytes += event.text.size();
  if (!style_.logprobs && !style_.trace) return {};
  progress.tokens.drawn(event.tokens);
  return progress.tokens.shown(progress.bytes);
}

std::string OpenAiWriter::event(int index, const Event& event) {
  Progress& progress = progress_[static_cast<std::size_t>(index)];
  const std::vector<ShownToken> tokens = follow(progress, event);
  std::vector<Json> parts = add(index, event.text, tokens, false);
  Json trace;
  if (style_.trace && (event.tree || !tokens.empty()))
    trace = trace_json(tokens, event.tree, tokenizer(), context_.sources);
  if (style_.stream) return chunks(index, std::move(parts), std::move(trace));
  if (!trace.is_null()) traces_.push_back(std::move(trace));
  return "";
}

std::string OpenAiWriter::done(int index, Generation generation) {
  Progress& progress = progress_[static_cast<std::size_t>(index)];
  progress.stop = generation.stop;
  progress.drawn = generation.tokens.size();
  progress.stats = std::move(generation.stats);
  ++finished_;
  std::vector<ShownToken> tokens;
  if (style_.logprobs || style_.trace) tokens = progress.tokens.finish(generation.text);
  const std::string rest = generation.text.substr(std::min(progress.bytes, generation.text.size()));
  std::vector<Json> parts = add(index, rest, tokens, true);
  Json trace;
  if (style_.trace && !tokens.empty()) trace = trace_json(tokens, nullptr, tokenizer(), context_.sources);
  if (!style_.stream) {
    if (!trace.is_null()) traces_.push_back(std::move(trace));
    return "";
  }
  std::string out = chunks(index, std::move(parts), std::move(trace));
  Json last = envelope(style_.chunk_object, Json::array({ended(index, nothing(index))}));
  const bool over = finished_ == progress_.size() && !style_.include_usage;
  if (over && style_.stats) last["speculation"] = statistics();
  return out + server_event(last);
}

// The trace goes with the first of them, and alone where there is none.
std::string OpenAiWriter::chunks(int index, std::vector<Json> parts, Json trace) {
  if (parts.empty() && !trace.is_null()) parts.push_back(nothing(index));
  std::string out;
  for (Json& part : parts) {
    Json choice = {{"index", index}};
    choice.update(part);
    choice["finish_reason"] = nullptr;
    Json chunk = envelope(style_.chunk_object, Json::array({std::move(choice)}));
    if (!trace.is_null()) chunk["coppice"] = std::exchange(trace, nullptr);
    out += server_event(chunk);
  }
  return out;
}

Json OpenAiWriter::ended(int index, Json choice) const {
  const Progress& progress = progress_[static_cast<std::size_t>(index)];
  Json out = {{"index", index}};
  out.update(choice);
  out["finish_reason"] = finish_reason(progress.stop, called_tools(index));
  out["stop_reason"] = to_string(progress.stop);
  return out;
}

Json OpenAiWriter::envelope(const char* object, Json choices) const {
  Json out = {{"id", context_.id},
              {"object", object},
              {"created", context_.created},
              {"model", context_.model},
              {"system_fingerprint", context_.fingerprint},
              {"choices", std::move(choices)}};
  if (style_.stream && style_.include_usage) out["usage"] = nullptr;
  return out;
}

// A prompt with several answers is counted once.
Json OpenAiWriter::usage() const {
  std::uint64_t prompt = 0, cached = 0, completion = 0;
  for (std::size_t i = 0; i < progress_.size(); ++i) {
    const auto given = static_cast<std::uint64_t>(forced(static_cast<int>(i)));
    completion += progress_[i].drawn - std::min<std::uint64_t>(progress_[i].drawn, given);
    if (i % static_cast<std::size_t>(style_.n) != 0) continue;
    prompt += static_cast<std::uint64_t>(context_.prompt_tokens[i]) + given;
    cached += progress_[i].stats.reused_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

Json OpenAiWriter::statistics() const {
  Stats all;
  for (const Progress& progress : progress_) all.add(progress.stats);
  return speculation_json(all, context_);
}

std::string OpenAiWriter::finish() {
  if (!style_.stream) {
    Json choices = Json::array();
    for (int i = 0; i < static_cast<int>(progress_.size()); ++i) choices.push_back(ended(i, whole(i)));
    Json answer = envelope(style_.object, std::move(choices));
    answer["usage"] = usage();
    if (style_.stats) answer["speculation"] = statistics();
    if (style_.trace) answer["coppice"] = std::move(traces_);
    return dump(answer);
  }
  std::string out;
  if (style_.include_usage) {
    Json chunk = envelope(style_.chunk_object, Json::array());
    chunk["usage"] = usage();
    if (style_.stats) chunk["speculation"] = statistics();
    out = server_event(chunk);
  }
  return out + "data: [DONE]\n\n";
}

std::string OpenAiWriter::fail(const ApiError& error) {
  const std::string body = error_body(Api::chat_completions, error);
  return style_.stream ? "data: " + body + "\n\n" : body;
}

}  // namespace coppice::serve
