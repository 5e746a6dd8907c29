#include "bench/prompts.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "files.h"
#include "options.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

// A line of JSON: "prompt", "user", the first of "turns", "question" or "text".
std::string prompt_of(const ordered_json& line) {
  for (const char* key : {"prompt", "user", "question", "text"}) {
    if (line.contains(key) && line[key].is_string()) return line[key].get<std::string>();
  }
  if (line.contains("turns") && line["turns"].is_array() && !line["turns"].empty() &&
      line["turns"][0].is_string()) {
    return line["turns"][0].get<std::string>();
  }
  return {};
}

std::string name_of(const ordered_json& line, int number) {
  for (const char* key : {"task_id", "question_id"}) {
    if (!line.contains(key)) continue;
    return line[key].is_string() ? line[key].get<std::string>() : line[key].dump();
  }
  return fmt::format("line {}", number);
}

}  // namespace

void PromptFlags::add(CLI::App& command) {
  command
      .add_option("--prompts", path,
                  "JSON lines with \"prompt\", \"user\", \"turns\", \"question\" or \"text\"")
      ->required();
  command.add_option("--limit", limit, "prompts, spread over the set; 0: all")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--instruction", instruction, "text around each prompt, which stands at {}");
  command.add_flag("--chat", chat, "prompts are a user's messages");
}

Result<std::vector<JsonLine>> read_json_lines(const std::string& path) {
  auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  std::vector<JsonLine> lines;
  std::size_t begin = 0;
  for (int number = 1; begin < text->size(); ++number) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const std::string line = text->substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    ordered_json json = ordered_json::parse(line, nullptr, false);
    if (!json.is_object()) return fail(fmt::format("{} line {}: a JSON object is wanted", path, number));
    lines.push_back({number, std::move(json)});
  }
  return lines;
}

Result<std::vector<NamedPrompt>> read_prompts(const std::string& path, int limit) {
  auto lines = read_json_lines(path);
  if (!lines) return tl::unexpected(lines.error());
  std::vector<NamedPrompt> prompts;
  for (const auto& [number, line] : *lines) {
    const std::string prompt = prompt_of(line);
    if (prompt.empty()) {
      return fail(fmt::format(
          "{} line {}: \"prompt\", \"user\", \"turns\", \"question\" or \"text\" is wanted", path, number));
    }
    const bool sorted = line.contains("category") && line["category"].is_string();
    prompts.push_back({name_of(line, number), prompt, sorted ? line["category"].get<std::string>() : ""});
  }
  if (prompts.empty()) return fail(fmt::format("{} has no prompts", path));
  return spread(prompts, limit);
}

Result<std::vector<std::string>> PromptFlags::read() const {
  auto prompts = read_prompts(path, limit);
  if (!prompts) return tl::unexpected(prompts.error());
  std::vector<std::string> texts;
  for (NamedPrompt& prompt : *prompts) texts.push_back(std::move(prompt.text));
  return texts;
}

Result<std::vector<std::vector<Token>>> PromptFlags::tokenise(const Model& model,
                                                              std::span<const std::string> prompts,
                                                              int context) const {
  std::vector<std::vector<Token>> out;
  std::optional<ChatTemplate> around;
  if (chat) {
    auto made = model.chat_template();
    if (!made) return tl::unexpected(made.error());
    around = *made;
  }
  for (const std::string& prompt : prompts) {
    std::string text = prompt;
    if (!instruction.empty()) {
      const auto hole = instruction.find("{}");
      text = hole == std::string::npos ? instruction + prompt
                                       : instruction.substr(0, hole) + prompt + instruction.substr(hole + 2);
    }
    if (around) {
      const ChatMessage message[] = {{"user", text}};
      auto tokens = around->tokens(message);
      if (!tokens) return tl::unexpected(tokens.error());
      out.push_back(*tokens);
    } else {
      out.push_back(model.tokenizer().encode(text));
    }
    if (static_cast<int>(out.back().size()) >= context) {
      return fail(fmt::format("prompt {} has {} tokens; the context of {} cannot hold it", out.size(),
                              out.back().size(), context));
    }
  }
  return out;
}

}  // namespace coppice::app
