#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/check.h"
#include "jinja/print.h"
#include "text/show_token.h"

namespace coppice::core {
namespace {

using Json = nlohmann::ordered_json;

// Templates build control tokens out of roles, '<|' + message.role + '|>', so a role is no user's text: it is
// one of these.
constexpr std::array<std::string_view, 12> kRoles = {"system",    "user",     "assistant", "tool",
                                                     "developer", "function", "ipython",   "document",
                                                     "documents", "context",  "control",   "environment"};

// Stands for a message where one is cut out; like a word, so that no template changes it.
constexpr std::string_view kMessage = "coppiceputsamessagehere";

std::int64_t local_seconds() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return static_cast<std::int64_t>(now) + parts.tm_gmtoff;
}

std::string spelling(const Vocabulary& vocabulary, Token token) {
  return token == kNoToken ? "" : vocabulary.tokens[static_cast<std::size_t>(token)];
}

// The control token that `text` begins with, whitespace aside; the longest.
Token control_at_start(const Vocabulary& vocabulary, std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  Token found = kNoToken;
  std::size_t longest = 0;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& token = vocabulary.tokens[i];
    if (vocabulary.kinds[i] != TokenKind::control || token.size() <= longest || !text.starts_with(token))
      continue;
    longest = token.size();
    found = static_cast<Token>(i);
  }
  return found;
}

struct Chosen {
  std::string_view program;
  std::string name;
};

Result<Chosen> choose(const Vocabulary& vocabulary, const ChatOptions& options) {
  if (!options.program.empty()) return Chosen{options.program, options.name};
  for (const auto& [wanted, needed] :
       {std::pair("tool_use", !options.tools.is_null()), std::pair("rag", !options.documents.is_null())})
    for (const auto& [name, program] : vocabulary.named_templates)
      if (needed && name == wanted) return Chosen{program, "tokenizer.chat_template." + name};
  if (!vocabulary.chat_template.empty()) return Chosen{vocabulary.chat_template, "tokenizer.chat_template"};
  return fail(
      "the model has no chat template (tokenizer.chat_template): it continues text and does not converse; "
      "use "
      "generate instead of chat, or an instruct model, or give a template with --chat-template-file");
}

Status check_messages(const Json& messages) {
  if (!messages.is_array()) return fail("the messages of a conversation are an array");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    const bool has_role = message.is_object() && message.contains("role") && message["role"].is_string();
    if (!has_role) return fail(fmt::format("message {} is no object with a \"role\"", i));
    const auto& role = message["role"].get_ref<const std::string&>();
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
      return fail(fmt::format("message {} has the role {}; roles are {}", i, show_token(role),
                              fmt::join(kRoles, ", ")));
    }
  }
  return {};
}

// As data, but for the roles.
Result<jinja::Value> values_of(const Json& messages) {
  COPPICE_TRY_STATUS(check_messages(messages));
  std::vector<jinja::Value> items;
  for (const Json& message : messages) {
    std::vector<std::pair<jinja::Value, jinja::Value>> entries;
    for (const auto& [key, held] : message.items()) {
      if (key == "role") {
        entries.emplace_back(jinja::Value(key), jinja::Value(held.get<std::string>()));
        continue;
      }
      COPPICE_TRY(jinja::Value value, jinja::from_json(held));
      entries.emplace_back(jinja::Value(jinja::Text(key, jinja::Origin::data)), std::move(value));
    }
    COPPICE_TRY(items.emplace_back(), jinja::make_dict(std::move(entries)));
  }
  return jinja::make_sequence(jinja::Sequence::Form::list, std::move(items));
}

Json json_of(std::span<const ChatMessage> messages) {
  Json out = Json::array();
  for (const ChatMessage& message : messages)
    out.push_back({{"role", message.role}, {"content", message.content}});
  return out;
}

Json one_message(const char* role) { return {{"role", role}, {"content", kMessage}}; }

}  // namespace

Result<ChatTemplate> ChatTemplate::make(const Vocabulary& vocabulary, const ChatOptions& options) {
  COPPICE_TRY(const Chosen chosen, choose(vocabulary, options));
  auto program = jinja::Template::parse(chosen.program);
  if (!program) return fail(fmt::format("{}, {}", chosen.name, program.error().message));
  ChatTemplate chat(std::move(*program), chosen.name, vocabulary);
  chat.source_ = chosen.program;
  chat.limits_ = options.limits;
  chat.bos_text_ = spelling(vocabulary, vocabulary.bos);
  chat.eos_text_ = spelling(vocabulary, vocabulary.eos);
  const auto add_token = [&](const char* name, Token token) {
    if (token != kNoToken) chat.variables_.emplace_back(name, jinja::Value(spelling(vocabulary, token)));
  };
  add_token("bos_token", vocabulary.bos);
  add_token("eos_token", vocabulary.eos);
  add_token("unk_token", vocabulary.unknown);
  add_token("pad_token", vocabulary.padding);
  if (!options.variables.is_object()) return fail("the variables of a chat template are a JSON object");
  for (const auto& [name, json] : options.variables.items()) {
    COPPICE_TRY(jinja::Value value, jinja::from_json(json));
    chat.variables_.emplace_back(name, std::move(value));
  }
  for (const auto& [name, json] :
       {std::pair("tools", &options.tools), std::pair("documents", &options.documents)}) {
    if (!json->is_null() && !json->is_array()) return fail(fmt::format("{} are a JSON array", name));
    COPPICE_TRY(jinja::Value value, jinja::from_json(*json));
    chat.variables_.emplace_back(name, std::move(value));
  }
  chat.end_ = vocabulary.eos;
  if (const auto after = chat.with_message(false)) {
    const Token end = control_at_start(vocabulary, std::string_view(after->bytes()).substr(kMessage.size()));
    if (end != kNoToken) chat.end_ = end;
  }
  return chat;
}

Status ChatTemplate::check(const Tokenizer& tokenizer) const {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool same = vocabulary.bos == bos_ && vocabulary.eos == eos_ &&
                    spelling(vocabulary, bos_) == bos_text_ && spelling(vocabulary, eos_) == eos_text_;
  if (!same) {
    return fail("the chat template and the tokenizer are of different models; both must come from one file");
  }
  return {};
}

Result<jinja::Text> ChatTemplate::render(const Json& messages, bool open_answer) const {
  COPPICE_TRY(jinja::Value values, values_of(messages));
  jinja::Variables variables = variables_;
  variables.emplace_back("messages", std::move(values));
  variables.emplace_back("add_generation_prompt", jinja::Value(open_answer));
  auto text = program_.render(variables, {limits_, local_seconds()});
  if (!text) return fail(fmt::format("{}, {}", name_, text.error().message));
  return text;
}

// A rendered conversation of one user's message: up to its end, or from its beginning on up to the answer.
Result<jinja::Text> ChatTemplate::with_message(bool before) const {
  COPPICE_TRY(const jinja::Text text, render(Json::array({one_message("user")}), !before));
  const std::size_t at = text.bytes().find(kMessage);
  if (at == std::string::npos) return fail(fmt::format("{} does not show a user's message", name_));
  return before ? text.slice(0, at + kMessage.size()) : text.slice(at, text.size());
}

Result<std::vector<Token>> ChatTemplate::encode(const Tokenizer& tokenizer, const jinja::Text& text) const {
  COPPICE_TRY_STATUS(check(tokenizer));
  std::vector<TextPart> parts;
  const std::string_view bytes = text.bytes();
  std::size_t at = 0;
  for (const jinja::TextRange& range : text.data()) {
    if (at < range.begin) parts.push_back({bytes.substr(at, range.begin - at), true});
    parts.push_back({bytes.substr(range.begin, range.end - range.begin), false});
    at = range.end;
  }
  if (at < bytes.size()) parts.push_back({bytes.substr(at), true});
  return tokenizer.encode(parts);
}

namespace {

std::vector<Token> with_begin(const Vocabulary& vocabulary, std::vector<Token> tokens) {
  const bool has = !tokens.empty() && tokens.front() == vocabulary.bos;
  if (vocabulary.add_bos && vocabulary.bos != kNoToken && !has) tokens.insert(tokens.begin(), vocabulary.bos);
  return tokens;
}

// How many tokens have a part of kMessage, which these end or begin with; the first may have a space too.
std::size_t message_tokens(const Tokenizer& tokenizer, std::span<const Token> tokens, bool at_the_end) {
  std::string seen;
  for (std::size_t count = 1; count <= tokens.size(); ++count) {
    if (at_the_end) {
      seen.insert(0, tokenizer.bytes(tokens[tokens.size() - count]));
    } else {
      seen += tokenizer.bytes(tokens[count - 1]);
    }
    if (seen.find(kMessage) != std::string::npos) return count;
  }
  return 0;
}

}  // namespace

Result<std::vector<Token>> ChatTemplate::before_message(const Tokenizer& tokenizer) const {
  COPPICE_TRY(std::vector<Token> tokens, beside_message(tokenizer, true));
  return with_begin(tokenizer.vocabulary(), std::move(tokens));
}

Result<std::vector<Token>> ChatTemplate::before_answer(const Tokenizer& tokenizer) const {
  COPPICE_TRY(std::vector<Token> tokens, beside_message(tokenizer, false));
  if (tokens.empty()) return fail(fmt::format("{} has nothing between a message and its answer", name_));
  return tokens;
}

// Cut out of the tokens of both together: by itself the text behind the message would get the space that
// stands before a text, and the one before it would end in the space that belongs to the message's first
// word.
Result<std::vector<Token>> ChatTemplate::beside_message(const Tokenizer& tokenizer, bool before) const {
  COPPICE_TRY(const jinja::Text both, with_message(before));
  COPPICE_TRY(std::vector<Token> tokens, encode(tokenizer, both));
  const auto message = static_cast<std::ptrdiff_t>(message_tokens(tokenizer, tokens, before));
  const auto first = before ? tokens.end() - message : tokens.begin();
  tokens.erase(first, first + message);
  return tokens;
}

Result<std::vector<Token>> ChatTemplate::tokens(const Tokenizer& tokenizer, const Json& messages,
                                                bool open_answer) const {
  COPPICE_TRY(const jinja::Text text, render(messages, open_answer));
  COPPICE_TRY(std::vector<Token> tokens, encode(tokenizer, text));
  return with_begin(tokenizer.vocabulary(), std::move(tokens));
}

Result<std::vector<Token>> ChatTemplate::tokens(const Tokenizer& tokenizer,
                                                std::span<const ChatMessage> messages,
                                                bool open_answer) const {
  return tokens(tokenizer, json_of(messages), open_answer);
}

Result<std::string> ChatTemplate::text(const Json& messages, bool open_answer) const {
  COPPICE_TRY(const jinja::Text text, render(messages, open_answer));
  return text.bytes();
}

Result<std::string> ChatTemplate::text(std::span<const ChatMessage> messages, bool open_answer) const {
  return text(json_of(messages), open_answer);
}

void add_end_of_turn(Vocabulary& vocabulary) {
  const auto chat = ChatTemplate::make(vocabulary);
  if (!chat) return;
  const auto text = chat->render({{{"role", "user"}, {"content", "a"}}, one_message("assistant")}, false);
  const std::size_t at = text ? text->bytes().find(kMessage) : std::string::npos;
  if (at == std::string::npos) return;
  const Token end =
      control_at_start(vocabulary, std::string_view(text->bytes()).substr(at + kMessage.size()));
  auto& ends = vocabulary.end_tokens;
  const auto place = std::lower_bound(ends.begin(), ends.end(), end);
  if (end != kNoToken && (place == ends.end() || *place != end)) ends.insert(place, end);
}

}  // namespace coppice::core
