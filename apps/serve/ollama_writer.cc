#include "ollama_writer.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>

namespace coppice::serve {
namespace {

// RFC 3339, in UTC.
std::string time_text(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::int64_t nanoseconds(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

Token last_token(const AnswerContext& context) {
  return context.last_prompt_tokens.empty() ? kNoToken : context.last_prompt_tokens.front();
}

}  // namespace

OllamaWriter::OllamaWriter(const OllamaStyle& style, const Model& model, AnswerContext context,
                           const CallStyle& calls)
    : style_(style),
      model_(model),
      context_(std::move(context)),
      tokens_(model_.tokenizer(), calls.family != nullptr, last_token(context_)) {
  if (calls.family) reader_.emplace(calls.reader());
}

const char* OllamaWriter::content_type() const {
  return style_.stream ? "application/x-ndjson" : "application/json";
}

std::string OllamaWriter::event(int, const Event& event) {
  bytes_ += event.text.size();
  Json trace;
  if (style_.trace) {
    tokens_.drawn(event.tokens);
    const auto shown = tokens_.shown(bytes_);
    if (event.tree || !shown.empty())
      trace = trace_json(shown, event.tree, model_.tokenizer(), context_.sources);
  }
  return add(event.text, std::move(trace), false);
}

std::string OllamaWriter::done(int, Generation generation) {
  stop_ = generation.stop;
  stats_ = std::move(generation.stats);
  Json trace;
  if (style_.trace) {
    const auto shown = tokens_.finish(generation.text);
    if (!shown.empty()) trace = trace_json(shown, nullptr, model_.tokenizer(), context_.sources);
  }
  return add(std::string_view(generation.text).substr(std::min(bytes_, generation.text.size())),
             std::move(trace), true);
}

// Calls of tools are whole objects here: they come in one line before the last.
std::string OllamaWriter::add(std::string_view text, Json trace, bool last) {
  std::vector<CallPiece> pieces;
  if (!reader_) {
    pieces.push_back({CallPiece::Kind::content, 0, std::string(text)});
  } else {
    pieces = reader_->push(text);
    if (last)
      for (CallPiece& piece : reader_->finish()) pieces.push_back(std::move(piece));
  }
  std::string content;
  for (CallPiece& piece : pieces) {
    if (piece.kind == CallPiece::Kind::content) content += piece.text;
    if (piece.kind == CallPiece::Kind::call)
      calls_.push_back({"", std::move(piece.text), ""});
    else if (piece.kind == CallPiece::Kind::arguments)
      calls_.back().arguments += piece.text;
  }
  if (!style_.stream) {
    content_ += content;
    if (!trace.is_null()) traces_.push_back(std::move(trace));
    return "";
  }
  std::string out;
  if (!content.empty() || !trace.is_null()) {
    Json shown = line(std::move(content));
    if (!trace.is_null()) shown["coppice"] = std::move(trace);
    out = dump(shown) + "\n";
  }
  if (last && !calls_.empty()) {
    Json shown = line("");
    shown["message"]["tool_calls"] = calls_json();
    out += dump(shown) + "\n";
  }
  return out;
}

Json OllamaWriter::line(std::string content) const {
  Json out = {{"model", context_.model}, {"created_at", time_text(std::time(nullptr))}};
  if (style_.chats)
    out["message"] = {{"role", "assistant"}, {"content", std::move(content)}};
  else
    out["response"] = std::move(content);
  out["done"] = false;
  return out;
}

Json OllamaWriter::calls_json() const {
  Json out = Json::array();
  for (const ToolCall& call : calls_) {
    const auto arguments = parse_bounded(call.arguments);
    // An answer that was cut inside a call has no object: its text, then.
    out.push_back(
        {{"function", {{"name", call.name}, {"arguments", arguments ? *arguments : Json(call.arguments)}}}});
  }
  return out;
}

void OllamaWriter::add_numbers(Json& line) const {
  const bool stopped = stop_ == StopReason::end_of_text || stop_ == StopReason::stop_string;
  const std::chrono::duration<double> total = std::chrono::steady_clock::now() - start_;
  line["done"] = true;
  line["done_reason"] = stopped ? "stop" : "length";
  line["stop_reason"] = to_string(stop_);
  line["total_duration"] = nanoseconds(total.count());
  line["load_duration"] = 0;
  line["prompt_eval_count"] = context_.prompt_tokens.empty() ? 0 : context_.prompt_tokens.front();
  line["prompt_eval_duration"] = nanoseconds(stats_.prefill_seconds);
  line["eval_count"] = stats_.tokens;
  line["eval_duration"] = nanoseconds(stats_.decode_seconds);
  if (style_.stats) line["speculation"] = speculation_json(stats_, context_);
}

std::string OllamaWriter::finish() {
  Json last = line(std::move(content_));
  add_numbers(last);
  if (!style_.stream && !calls_.empty()) last["message"]["tool_calls"] = calls_json();
  if (!style_.stream && style_.trace) last["coppice"] = std::move(traces_);
  return dump(last) + (style_.stream ? "\n" : "");
}

std::string OllamaWriter::fail(const ApiError& error) {
  return error_body(Api::ollama_chat, error) + (style_.stream ? "\n" : "");
}

}  // namespace coppice::serve
