#include <coppice/tool_calls.h>

#include <algorithm>

namespace coppice {
namespace {

constexpr std::string_view kDeepseekMarks[] = {"<｜tool▁call▁begin｜>"};
constexpr std::string_view kDeepseekOpens[] = {"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"};
constexpr std::string_view kDeepseekDrops[] = {"<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "```"};
constexpr std::string_view kMistralMarks[] = {"[TOOL_CALLS]"};
constexpr std::string_view kActionMarks[] = {"<|START_ACTION|>"};
constexpr std::string_view kActionDrops[] = {"<|END_ACTION|>"};
constexpr std::string_view kCommandMarks[] = {"Action: ```json", "Action:```json"};
constexpr std::string_view kCommandDrops[] = {"```"};
constexpr std::string_view kGraniteMarks[] = {"<|tool_call|>"};
constexpr std::string_view kGraniteOpens[] = {"<|tool_call|>", "<tool_call>"};
constexpr std::string_view kHermesMarks[] = {"<tool_call>"};
constexpr std::string_view kHermesDrops[] = {"</tool_call>"};
constexpr std::string_view kLlamaMarks[] = {"<|python_tag|>", "Environment: ipython"};
constexpr std::string_view kLlamaOpens[] = {"<|python_tag|>"};
constexpr std::string_view kLlamaDrops[] = {";"};

// The first that fits counts: a template of Granite may contain Hermes' mark too.
constexpr ToolFamily kFamilies[] = {
    {"deepseek", kDeepseekMarks, kDeepseekOpens, kDeepseekDrops, "name", "arguments", false, ""},
    {"mistral", kMistralMarks, kMistralMarks, {}, "name", "arguments", false, "[TOOL_CALLS]["},
    {"command-action", kActionMarks, kActionMarks, kActionDrops, "tool_name", "parameters", false,
     "<|START_ACTION|>["},
    {"command-r", kCommandMarks, kCommandMarks, kCommandDrops, "tool_name", "parameters", false,
     "Action: ```json\n[\n"},
    {"granite", kGraniteMarks, kGraniteOpens, kHermesDrops, "name", "arguments", false, "<|tool_call|>["},
    {"hermes", kHermesMarks, kHermesMarks, kHermesDrops, "name", "arguments", false, "<tool_call>\n"},
    {"llama", kLlamaMarks, kLlamaOpens, kLlamaDrops, "name", "parameters", true, ""},
    {"json", {}, {}, {}, "name", "arguments", true, ""},
};

}  // namespace

const ToolFamily& tool_family(std::string_view chat_template) {
  const auto contains = [&](std::string_view mark) {
    return chat_template.find(mark) != std::string_view::npos;
  };
  for (const ToolFamily& family : kFamilies)
    if (family.marks.empty() || std::any_of(family.marks.begin(), family.marks.end(), contains))
      return family;
  return kFamilies[std::size(kFamilies) - 1];
}

std::span<const ToolFamily> tool_families() { return kFamilies; }

}  // namespace coppice
