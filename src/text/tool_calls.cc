#include <coppice/tool_calls.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "text/call_object.h"

namespace coppice {

using core::CallObject;

namespace {

constexpr std::string_view kSpace = " \t\r\n";
constexpr std::size_t kLongestHeader =
    200;  // bytes between a mark and the arguments of a call named outside them

// The earliest of `marks` in `text`; {npos, 0}: none.
std::pair<std::size_t, std::size_t> find_mark(std::string_view text,
                                              std::span<const std::string_view> marks) {
  std::pair<std::size_t, std::size_t> best{std::string_view::npos, 0};
  for (const std::string_view mark : marks) {
    const std::size_t at = text.find(mark);
    if (at < best.first || (at == best.first && at != std::string_view::npos && mark.size() > best.second))
      best = {at, mark.size()};
  }
  return best;
}

// Bytes at the end of `text` that may be the beginning of a mark.
std::size_t possible_mark(std::string_view text, std::span<const std::string_view> marks) {
  std::size_t held = 0;
  for (const std::string_view mark : marks)
    for (std::size_t n = std::min(text.size(), mark.size() - 1); n > held; --n)
      if (text.ends_with(mark.substr(0, n))) held = n;
  return held;
}

std::string_view without_space_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

std::string_view trimmed(std::string_view text) {
  text = without_space_behind(text);
  return text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
}

// "function<｜tool▁sep｜>NAME\n```json\n", "NAME<｜tool▁sep｜>", "NAME[ARGS]", "NAME".
std::string name_in_header(std::string_view header) {
  constexpr std::string_view kCuts[] = {"<｜tool▁sep｜>", "[ARGS]", "[CALL_ID]", "```", "\n"};
  const auto [at, size] = find_mark(header, kCuts);
  const std::string_view first = trimmed(header.substr(0, at));
  if (first == "function" && at != std::string_view::npos) return name_in_header(header.substr(at + size));
  const bool right = !first.empty() && first.find_first_of(" \t<>\"'(){}[],:") == std::string_view::npos;
  return right ? std::string(first) : std::string();
}

}  // namespace

class ToolCallReader::Impl {
 public:
  Impl(const ToolFamily& family, ToolCallOptions options)
      : family_(&family),
        options_(std::move(options)),
        state_(options_.inside ? State::opening : State::text),
        bare_(family.bare),
        marked_(options_.inside) {}

  std::vector<CallPiece> push(std::string_view text);
  std::vector<CallPiece> finish();
  int calls() const { return calls_; }

 private:
  // text: what is said. opening: behind a mark. object: in a call. between: behind one.
  enum class State { text, opening, object, between };

  bool step(std::vector<CallPiece>& out);  // false: it needs more text
  bool read_text(std::vector<CallPiece>& out);
  bool read_opening(std::vector<CallPiece>& out);
  bool read_named(std::vector<CallPiece>& out);
  bool read_object(std::vector<CallPiece>& out);
  bool read_between();
  bool take_mark();
  bool begins_mark(std::span<const std::string_view> marks) const;
  bool drop_marks();  // and whitespace, at the start of what is held
  void say(std::string text, std::vector<CallPiece>& out);
  void show_call(std::vector<CallPiece>& out);
  bool no_call(std::vector<CallPiece>& out);  // it looked like one
  bool believes(const std::string& name) const;

  const ToolFamily* family_;
  ToolCallOptions options_;
  State state_;
  bool bare_;            // a call without a mark is possible: nothing was said yet
  bool marked_ = false;  // a mark stood before this call
  std::string held_;     // not read yet
  std::string seen_;     // of a call that may be none: what was read of it
  std::optional<CallObject> object_;
  bool list_ = false, shown_ = false;
  std::size_t sent_ = 0;  // bytes of the call's arguments that were shown
  int calls_ = 0;
};

std::vector<CallPiece> ToolCallReader::Impl::push(std::string_view text) {
  std::vector<CallPiece> out;
  held_ += text;
  while (step(out)) {
  }
  return out;
}

std::vector<CallPiece> ToolCallReader::Impl::finish() {
  std::vector<CallPiece> out;
  if (state_ == State::opening || (state_ == State::object && !shown_)) no_call(out);
  if (state_ == State::text) say(std::exchange(held_, {}), out);
  return out;
}

bool ToolCallReader::Impl::step(std::vector<CallPiece>& out) {
  switch (state_) {
    case State::text:
      return read_text(out);
    case State::opening:
      return read_opening(out);
    case State::object:
      return read_object(out);
    case State::between:
      return read_between();
  }
  return false;
}

bool ToolCallReader::Impl::read_text(std::vector<CallPiece>& out) {
  const std::size_t first = held_.find_first_not_of(kSpace);
  if (bare_ && first == std::string::npos) return false;
  if (bare_ && (held_[first] == '{' || held_[first] == '[')) {
    state_ = State::opening;
    marked_ = false;
    return true;
  }
  const auto [at, size] = find_mark(held_, family_->opens);
  if (at != std::string::npos) {
    say(std::string(without_space_behind(std::string_view(held_).substr(0, at))), out);
    seen_ = held_.substr(at, size);
    held_.erase(0, at + size);
    state_ = State::opening;
    marked_ = true;
    return true;
  }
  // Whitespace before a call is no part of what is said.
  std::string_view clear = held_;
  clear.remove_suffix(possible_mark(held_, family_->opens));
  if (!family_->opens.empty()) clear = without_space_behind(clear);
  const std::size_t size_said = clear.size();
  say(std::string(clear), out);
  held_.erase(0, size_said);
  return false;
}

bool ToolCallReader::Impl::read_opening(std::vector<CallPiece>& out) {
  const std::size_t first = held_.find_first_not_of(kSpace);
  if (first == std::string::npos) return false;
  seen_ += held_.substr(0, first);
  held_.erase(0, first);
  if (take_mark()) return true;
  if (begins_mark(family_->opens)) return false;
  if (held_[0] == '[' && !list_) {
    list_ = true;
    seen_ += '[';
    held_.erase(0, 1);
    return true;
  }
  if (held_[0] != '{') return read_named(out);
  object_.emplace();
  state_ = State::object;
  return true;
}

// The name stands before the arguments and not in them.
bool ToolCallReader::Impl::read_named(std::vector<CallPiece>& out) {
  const std::size_t brace = held_.find('{');
  if (!marked_ || list_ || std::min(brace, held_.size()) > kLongestHeader) return no_call(out);
  if (brace == std::string::npos) return false;
  std::string name = name_in_header(std::string_view(held_).substr(0, brace));
  if (name.empty()) return no_call(out);
  object_.emplace(std::move(name));
  seen_ += held_.substr(0, brace);
  held_.erase(0, brace);
  state_ = State::object;
  return true;
}

bool ToolCallReader::Impl::read_object(std::vector<CallPiece>& out) {
  CallObject::State state = CallObject::State::open;
  std::size_t at = 0;
  while (at < held_.size() && state == CallObject::State::open) state = object_->push(held_[at++]);
  held_.erase(0, at);
  if (object_->named() && !shown_ && !believes(object_->name())) return no_call(out);
  if (state == CallObject::State::wrong && !shown_) return no_call(out);
  if (object_->named()) show_call(out);
  if (state == CallObject::State::open) return false;
  if (shown_) ++calls_;
  object_.reset();
  seen_.clear();
  shown_ = bare_ = false;
  sent_ = 0;
  state_ = State::between;
  return true;
}

bool ToolCallReader::Impl::read_between() {
  if (!drop_marks()) return false;
  if (take_mark()) return true;
  if (list_ && held_[0] == '{') {
    state_ = State::opening;
    return true;
  }
  // Some models write one call behind the other.
  bare_ = family_->bare && held_[0] == '{';
  list_ = false;
  state_ = State::text;
  return true;
}

bool ToolCallReader::Impl::drop_marks() {
  for (;;) {
    held_.erase(0, std::min(held_.find_first_not_of(kSpace), held_.size()));
    if (held_.empty()) return false;
    if (list_ && (held_[0] == ',' || held_[0] == ']')) {
      list_ = held_[0] == ',';
      held_.erase(0, 1);
      continue;
    }
    const auto [at, size] = find_mark(held_, family_->drops);
    if (at == 0) {
      held_.erase(0, size);
      continue;
    }
    return !begins_mark(family_->drops) && !begins_mark(family_->opens);
  }
}

// What is held begins with a mark that opens calls.
bool ToolCallReader::Impl::take_mark() {
  const auto [at, size] = find_mark(held_, family_->opens);
  if (at != 0) return false;
  seen_ += held_.substr(0, size);
  held_.erase(0, size);
  marked_ = true;
  state_ = State::opening;
  return true;
}

bool ToolCallReader::Impl::begins_mark(std::span<const std::string_view> marks) const {
  return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) {
    return mark.size() > held_.size() && mark.starts_with(held_);
  });
}

void ToolCallReader::Impl::say(std::string text, std::vector<CallPiece>& out) {
  if (text.empty()) return;
  if (text.find_first_not_of(kSpace) != std::string::npos) bare_ = false;
  out.push_back({CallPiece::Kind::content, 0, std::move(text)});
}

void ToolCallReader::Impl::show_call(std::vector<CallPiece>& out) {
  const bool wanted = options_.parallel || calls_ == 0;
  if (!shown_ && wanted) out.push_back({CallPiece::Kind::call, calls_, object_->name()});
  shown_ = true;
  const std::string& arguments = object_->arguments();
  if (arguments.size() > sent_ && wanted)
    out.push_back({CallPiece::Kind::arguments, calls_, arguments.substr(sent_)});
  sent_ = arguments.size();
}

bool ToolCallReader::Impl::no_call(std::vector<CallPiece>& out) {
  std::string text = std::exchange(seen_, {});
  if (object_) text += object_->raw();
  object_.reset();
  bare_ = list_ = false;
  state_ = State::text;
  say(std::move(text), out);
  return !held_.empty();
}

// Behind a mark the model means a call, whatever its name; JSON alone is one if a tool has that name.
bool ToolCallReader::Impl::believes(const std::string& name) const {
  const auto& names = options_.names;
  return marked_ || std::find(names.begin(), names.end(), name) != names.end();
}

ToolCallReader::ToolCallReader(const ToolFamily& family, ToolCallOptions options)
    : impl_(std::make_unique<Impl>(family, std::move(options))) {}
ToolCallReader::ToolCallReader(ToolCallReader&&) noexcept = default;
ToolCallReader& ToolCallReader::operator=(ToolCallReader&&) noexcept = default;
ToolCallReader::~ToolCallReader() = default;

std::vector<CallPiece> ToolCallReader::push(std::string_view text) { return impl_->push(text); }
std::vector<CallPiece> ToolCallReader::finish() { return impl_->finish(); }
int ToolCallReader::calls() const { return impl_->calls(); }

AnswerParts read_tool_calls(const ToolFamily& family, ToolCallOptions options, std::string_view answer) {
  ToolCallReader reader(family, std::move(options));
  std::vector<CallPiece> pieces = reader.push(answer);
  for (CallPiece& piece : reader.finish()) pieces.push_back(std::move(piece));
  AnswerParts parts;
  for (CallPiece& piece : pieces) {
    if (piece.kind == CallPiece::Kind::content) parts.content += piece.text;
    if (piece.kind == CallPiece::Kind::call) parts.calls.emplace_back().name = std::move(piece.text);
    if (piece.kind == CallPiece::Kind::arguments) parts.calls.back().arguments += piece.text;
  }
  return parts;
}

}  // namespace coppice
