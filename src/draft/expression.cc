#include "draft/expression.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr std::size_t kMaxLength = 4096;
constexpr std::string_view kDrafters = "drafters";
constexpr int kMaxNesting = 8;    // stages inside stages; each is a model in memory
constexpr int kMaxDrafters = 32;  // bits of a SourceMask

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_'; }
bool is_bare(char c) { return !is_space(c) && std::string_view("(),|\"").find(c) == std::string_view::npos; }

class Parser {
 public:
  Parser(std::string_view text, std::string_view kind) : text_(text), kind_(kind) {}

  Result<DrafterMix> parse() {
    COPPICE_TRY_STATUS(check_length());
    skip_spaces();
    if (word() == "none" && rest_is_empty(at_ + 4)) return DrafterMix{};
    COPPICE_TRY(DrafterMix mix, parse_mix(0));
    if (at_ < text_.size()) return error("expected `|` and another drafter, or the end");
    return mix;
  }

  Result<DrafterNode> parse_call() {
    COPPICE_TRY_STATUS(check_length());
    COPPICE_TRY(DrafterNode node, parse_drafter(0));
    skip_spaces();
    if (at_ < text_.size()) return error("expected the end");
    return node;
  }

 private:
  Status check_length() const {
    if (text_.size() <= kMaxLength) return {};
    return fail(fmt::format("{}: the expression has {} characters; at most {} are read", kind_, text_.size(),
                            kMaxLength));
  }
  Result<DrafterMix> parse_mix(int nesting) {
    if (nesting > kMaxNesting)
      return error(fmt::format("drafters are nested more than {} deep", kMaxNesting));
    DrafterMix mix;
    do {
      COPPICE_TRY(DrafterNode node, parse_drafter(nesting));
      mix.push_back(std::move(node));
    } while (accept('|'));
    return mix;
  }

  Result<DrafterNode> parse_drafter(int nesting) {
    skip_spaces();
    DrafterNode node;
    node.column = column();
    node.name = word();
    if (node.name.empty())
      return error(kind_ == kDrafters ? "expected the name of a drafter, such as `lookup`, or `none`"
                                      : "expected a name");
    if (node.name == "none") return error("`none` stands alone: it cannot be mixed or nested");
    if (++drafters_ > kMaxDrafters)
      return error(fmt::format("there are more than {} drafters", kMaxDrafters));
    at_ += node.name.size();
    if (!accept('(')) return node;
    if (accept(')')) return node;
    do {
      COPPICE_TRY_STATUS(parse_argument(node, nesting));
    } while (accept(','));
    if (!accept(')')) return error(fmt::format("expected `,` or the `)` of `{}(`", node.name));
    return node;
  }

  Status parse_argument(DrafterNode& node, int nesting) {
    skip_spaces();
    const std::string key(word());
    const std::size_t after = spaces_from(at_ + key.size());
    const char next = after < text_.size() ? text_[after] : '\0';
    if (!key.empty() && next == '=') {
      const auto same = [&](const auto& option) { return option.first == key; };
      if (std::any_of(node.options.begin(), node.options.end(), same))
        return error(fmt::format("`{}` is given twice", key));
      at_ = after + 1;
      COPPICE_TRY(std::string value, parse_text("a value"));
      node.options.emplace_back(key, std::move(value));
      return {};
    }
    // A word is followed by something that no path could go on with.
    if (!key.empty() && (after >= text_.size() || next == '(' || next == '|' || next == ',' || next == ')')) {
      if (!node.inner.empty())
        return error(fmt::format("`{}` takes one mix; join drafters with `|`", node.name));
      COPPICE_TRY(node.inner, parse_mix(nesting + 1));
      return {};
    }
    COPPICE_TRY(std::string path, parse_text("a file, a drafter or key=value"));
    node.files.push_back(std::move(path));
    return {};
  }

  Result<std::string> parse_text(const char* expected) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '"') return parse_quoted();
    const std::size_t from = at_;
    while (at_ < text_.size() && is_bare(text_[at_])) ++at_;
    if (at_ == from) return error(fmt::format("expected {}", expected));
    return std::string(text_.substr(from, at_ - from));
  }

  Result<std::string> parse_quoted() {
    const std::size_t from = at_++;
    std::string text;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      const bool escape =
          text_[at_] == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\');
      if (escape) ++at_;
      text += text_[at_];
    }
    if (at_ == text_.size()) return error_at(from, "this quote is never closed");
    if (text.empty()) return error_at(from, "there is nothing in the quotes");
    ++at_;
    return text;
  }

  // The word that starts here, not consumed; empty if there is none.
  std::string_view word() const {
    if (at_ >= text_.size() || !is_letter(text_[at_])) return {};
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  std::size_t spaces_from(std::size_t at) const {
    while (at < text_.size() && is_space(text_[at])) ++at;
    return at;
  }
  void skip_spaces() { at_ = spaces_from(at_); }
  bool rest_is_empty(std::size_t at) const { return spaces_from(at) == text_.size(); }
  bool accept(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  int column() const { return static_cast<int>(at_) + 1; }
  tl::unexpected<Error> error(std::string_view what) const { return error_at(at_, what); }
  tl::unexpected<Error> error_at(std::size_t at, std::string_view what) const {
    return fail(fmt::format("{}, column {}: {}", kind_, at + 1, what));
  }

  std::string_view text_, kind_;
  std::size_t at_ = 0;
  int drafters_ = 0;
};

// Bare where that reads back the same.
std::string quote(const std::string& text, bool is_path) {
  const bool bare = !text.empty() && std::all_of(text.begin(), text.end(), is_bare);
  const bool word_like =
      is_path && is_letter(text[0]) &&
      (std::all_of(text.begin(), text.end(), is_word) || text.find('=') != std::string::npos);
  if (bare && !word_like) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string to_string(const DrafterNode& node) {
  std::vector<std::string> arguments;
  for (const std::string& file : node.files) arguments.push_back(quote(file, true));
  for (const auto& [key, value] : node.options) arguments.push_back(key + "=" + quote(value, false));
  if (!node.inner.empty()) arguments.push_back(to_string(node.inner));
  if (arguments.empty()) return node.name;
  return fmt::format("{}({})", node.name, fmt::join(arguments, ", "));
}

}  // namespace

Result<DrafterMix> parse_drafters(std::string_view text) { return Parser(text, kDrafters).parse(); }

Result<DrafterNode> parse_call(std::string_view text, std::string_view kind) {
  return Parser(text, kind).parse_call();
}

std::string to_string(const DrafterMix& mix) {
  if (mix.empty()) return "none";
  std::vector<std::string> drafters;
  for (const DrafterNode& node : mix) drafters.push_back(to_string(node));
  return fmt::format("{}", fmt::join(drafters, " | "));
}

}  // namespace coppice::core
