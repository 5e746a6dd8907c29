// The text room as a filter, for tests/judge/tokenizer_judge.py.
//     tokenize_lines MODEL.gguf [--parse-special | --chat | --time]
// Records in: u32 length, that many bytes (with --chat: JSON [{"role": "user", "content": "..."}, ...]).
// Records out: u32 count, count i32 ids; u32 length, that many bytes: what the ids decode to (the template's
// text; with --time: bytes encoded in a second, the best of three).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace coppice::core {
namespace {

int refuse(const std::string& message) {
  std::fprintf(stderr, "tokenize_lines: %s\n", message.c_str());
  return 2;
}

bool read_record(std::string& record) {
  std::uint32_t length = 0;
  if (std::fread(&length, sizeof length, 1, stdin) != 1) return false;
  record.resize(length);
  return std::fread(record.data(), 1, length, stdin) == length;
}

void write_record(const std::vector<Token>& tokens, std::string_view text) {
  const auto count = static_cast<std::uint32_t>(tokens.size());
  std::fwrite(&count, sizeof count, 1, stdout);
  std::fwrite(tokens.data(), sizeof(Token), tokens.size(), stdout);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::fwrite(&length, sizeof length, 1, stdout);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

int run_text(const Tokenizer& tokenizer, bool parse_special) {
  for (std::string record; read_record(record);) {
    const std::vector<Token> tokens = tokenizer.encode(record, parse_special);
    write_record(tokens, tokenizer.decode(tokens, parse_special));
  }
  return 0;
}

int run_time(const Tokenizer& tokenizer) {
  for (std::string record; read_record(record);) {
    double best = 0;
    for (int i = 0; i < 3; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      tokenizer.encode(record);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      best = std::max(best, static_cast<double>(record.size()) / seconds.count());
    }
    write_record({}, std::to_string(best));
  }
  return 0;
}

int run_chat(const Tokenizer& tokenizer) {
  const auto chat = ChatTemplate::make(tokenizer.vocabulary());
  if (!chat) return refuse(chat.error().message);
  for (std::string record; read_record(record);) {
    std::vector<ChatMessage> messages;
    for (const auto& message : nlohmann::json::parse(record)) {
      messages.push_back({message.at("role"), message.at("content")});
    }
    const auto tokens = chat->tokens(tokenizer, messages);
    const auto text = chat->text(messages);
    if (!tokens) return refuse(tokens.error().message);
    if (!text) return refuse(text.error().message);
    write_record(*tokens, *text);
  }
  return 0;
}

int run(const std::string& path, const std::string& option) {
  const auto file = gguf::File::open(path);
  if (!file) return refuse(file.error().message);
  auto vocabulary = Vocabulary::read(**file);
  if (!vocabulary) return refuse(vocabulary.error().message);
  const auto tokenizer = Tokenizer::make(*std::move(vocabulary));
  if (!tokenizer) return refuse(tokenizer.error().message);
  if (option == "--time") return run_time(**tokenizer);
  if (option == "--chat") return run_chat(**tokenizer);
  return run_text(**tokenizer, option == "--parse-special");
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count < 2 || count > 3)
    return coppice::core::refuse("give a model file, and --parse-special, --chat or --time");
  return coppice::core::run(arguments[1], count == 3 ? arguments[2] : "");
}
