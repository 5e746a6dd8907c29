// How models write calls of tools, family by family, and what is left of their text.
#include <coppice/tool_calls.h>
#include <gtest/gtest.h>

#include <string>

namespace coppice {
namespace {

const ToolFamily& family(std::string_view name) {
  for (const ToolFamily& row : tool_families())
    if (row.name == name) return row;
  ADD_FAILURE() << "no family " << name;
  return tool_families().back();
}

ToolCallOptions weather() { return {.names = {"weather", "time"}, .parallel = true, .inside = false}; }

// "content|name(arguments)|name(arguments)"
std::string shown(const std::vector<CallPiece>& pieces) {
  std::string content, calls;
  for (const CallPiece& piece : pieces) {
    if (piece.kind == CallPiece::Kind::content) content += piece.text;
    if (piece.kind == CallPiece::Kind::call) calls += "|" + piece.text + ":";
    if (piece.kind == CallPiece::Kind::arguments) calls += piece.text;
  }
  return content + calls;
}

std::string read(std::string_view name, std::string_view text, std::size_t step,
                 const ToolCallOptions& options = weather()) {
  ToolCallReader reader(family(name), options);
  std::vector<CallPiece> all;
  for (std::size_t at = 0; at < text.size(); at += step)
    for (CallPiece& piece : reader.push(text.substr(at, step))) all.push_back(std::move(piece));
  for (CallPiece& piece : reader.finish()) all.push_back(std::move(piece));
  return shown(all);
}

struct Case {
  const char *family, *text, *wanted;
};

constexpr Case kCases[] = {
    {"hermes", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"B}\\\"{n\"}}\n</tool_call>",
     "|weather:{\"city\": \"B}\\\"{n\"}"},
    {"hermes",
     "Let me "
     "see.\n<tool_call>{\"name\":\"time\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"weather\"}</"
     "tool_call>",
     "Let me see.|time:{}|weather:{}"},
    {"hermes", "{\"name\": \"weather\", \"arguments\": {}}", "{\"name\": \"weather\", \"arguments\": {}}"},
    {"hermes", "a <b and <tool_cal", "a <b and <tool_cal"},
    {"hermes", "<tool_call>nonsense</tool_call>", "<tool_call>nonsense</tool_call>"},
    {"hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call> done",
     "done|weather:{\"a\": 1}"},
    {"llama", "{\"name\": \"weather\", \"parameters\": {\"x\": [1, {\"y\": 2}]}}",
     "|weather:{\"x\": [1, {\"y\": 2}]}"},
    {"llama",
     "<|python_tag|>{\"name\": \"time\", \"parameters\": {}}; {\"name\": \"weather\", \"parameters\": {}}",
     "|time:{}|weather:{}"},
    {"llama", "{\"type\": \"function\", \"name\": \"time\", \"parameters\": {}}", "|time:{}"},
    {"llama", "{\"name\": \"nobody\", \"parameters\": {}}", "{\"name\": \"nobody\", \"parameters\": {}}"},
    {"llama", "{\"answer\": 42}", "{\"answer\": 42}"},
    {"llama", "It is {warm}", "It is {warm}"},
    {"mistral",
     "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"a\": 1}}, {\"name\": \"time\", \"arguments\": "
     "{}}]",
     "|weather:{\"a\": 1}|time:{}"},
    {"mistral", "[TOOL_CALLS]weather[ARGS]{\"a\": 1}[TOOL_CALLS]time[CALL_ID]123456789[ARGS]{}",
     "|weather:{\"a\": 1}|time:{}"},
    {"mistral", "[TOOL_CALLS]weather{\"a\": {\"b\": \"}\"}}", "|weather:{\"a\": {\"b\": \"}\"}}"},
    {"deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"a\": "
     "1}\n```<｜tool▁call▁end｜>\n"
     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>time\n```json\n{}\n```<｜tool▁call▁end｜><"
     "｜tool▁calls▁end｜>",
     "|weather:{\"a\": 1}|time:{}"},
    {"deepseek",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "|time:{}"},
    {"command-r",
     "Plan\nAction: ```json\n[\n    {\n \"tool_name\": \"weather\",\n \"parameters\": {\"a\": null}\n "
     "}\n]```",
     "Plan|weather:{\"a\": null}"},
    {"command-action",
     "<|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": \"time\", \"parameters\": "
     "{}}\n]<|END_ACTION|>",
     "|time:{}"},
    {"granite", "<|tool_call|>[{\"name\": \"weather\", \"arguments\": {\"a\": 1}}]", "|weather:{\"a\": 1}"},
    {"granite", "<tool_call>[{\"arguments\": {\"a\": 1}, \"name\": \"weather\"}]", "|weather:{\"a\": 1}"},
    {"json", "{\"name\": \"time\", \"arguments\": {}}", "|time:{}"},
    {"json", "[{\"name\": \"time\", \"arguments\": {}}, {\"name\": \"weather\", \"arguments\": {}}]",
     "|time:{}|weather:{}"},
    {"json", "{\"type\": \"function\", \"function\": {\"name\": \"time\", \"arguments\": \"{}\"}}",
     "|time:{}"},
    {"json", "{\"unfinished", "{\"unfinished"},
    {"json", "  \n", "  \n"},
};

TEST(ToolCalls, EveryFamilysCallsAreRead) {
  for (const Case& one : kCases) EXPECT_EQ(read(one.family, one.text, 100000), one.wanted) << one.text;
}

TEST(ToolCalls, HowTheTextIsCutChangesNothing) {
  for (const Case& one : kCases)
    for (const std::size_t step : {1, 2, 3, 7})
      EXPECT_EQ(read(one.family, one.text, step), one.wanted) << one.text << " by " << step;
}

TEST(ToolCalls, AnAnswerThatIsCutLeavesWhatThereIsOfTheCall) {
  EXPECT_EQ(read("hermes", "<tool_call>{\"name\": \"weather\", \"arguments\": {\"ci", 1), "|weather:{\"ci");
  EXPECT_EQ(read("hermes", "<tool_call>{\"name\": \"wea", 1), "<tool_call>{\"name\": \"wea");
}

TEST(ToolCalls, BehindAnOpenedCallTheTextIsTheCall) {
  ToolCallOptions inside = weather();
  inside.inside = true;
  EXPECT_EQ(read("hermes", "{\"name\":\"weather\",\"arguments\":{\"a\":1}}", 1, inside),
            "|weather:{\"a\":1}");
  EXPECT_EQ(read("mistral", "{\"name\":\"weather\",\"arguments\":{}}", 5, inside), "|weather:{}");
}

TEST(ToolCalls, WithoutParallelCallsTheFirstCounts) {
  ToolCallOptions first = weather();
  first.parallel = false;
  EXPECT_EQ(read("mistral",
                 "[TOOL_CALLS][{\"name\":\"time\",\"arguments\":{}},{\"name\":\"weather\",\"arguments\":{}}]",
                 1, first),
            "|time:{}");
}

TEST(ToolCalls, ArgumentsStreamWhileTheyAreWritten) {
  ToolCallReader reader(family("hermes"), weather());
  EXPECT_EQ(shown(reader.push("Yes <tool_call>{\"name\": \"weather\", ")), "Yes|weather:");
  EXPECT_EQ(shown(reader.push("\"arguments\": {\"city\"")), "{\"city\"");
  EXPECT_EQ(shown(reader.push(": 1}")), ": 1}");
  EXPECT_EQ(shown(reader.push("}</tool_call>")), "");
  EXPECT_EQ(reader.calls(), 1);
}

TEST(ToolCalls, TextGoesOnAtOnceWhereItCanBecomeNoCall) {
  ToolCallReader reader(family("hermes"), weather());
  EXPECT_EQ(shown(reader.push("one")), "one");
  EXPECT_EQ(shown(reader.push(" two <")), " two");  // the space may stand before a call
  EXPECT_EQ(shown(reader.push("b")), " <b");
}

TEST(ToolCalls, AWholeAnswerIsTakenApartAtOnce) {
  const AnswerParts parts =
      read_tool_calls(family("hermes"), weather(),
                      "Yes <tool_call>{\"name\": \"time\", \"arguments\": {\"a\": 1}}</tool_call>");
  EXPECT_EQ(parts.content, "Yes");
  ASSERT_EQ(parts.calls.size(), 1u);
  EXPECT_EQ(parts.calls[0].name, "time");
  EXPECT_EQ(parts.calls[0].arguments, "{\"a\": 1}");
}

TEST(ToolCalls, ACallNestedTooDeeplyToBeReadIsText) {
  std::string deep = "{\"function\": {\"name\": \"time\", \"arguments\": ";
  for (int i = 0; i < 100000; ++i) deep += "[";
  for (int i = 0; i < 100000; ++i) deep += "]";
  deep += "}}";
  EXPECT_EQ(read("json", deep, 1000), deep);
}

TEST(ToolFamilies, ATemplateSaysWhichFamilyItIs) {
  EXPECT_EQ(tool_family("{{ '<tool_call>' }}").name, "hermes");
  EXPECT_EQ(tool_family("[TOOL_CALLS]").name, "mistral");
  EXPECT_EQ(tool_family("<|python_tag|>").name, "llama");
  EXPECT_EQ(tool_family("<|tool_call|> and <tool_call>").name, "granite");
  EXPECT_EQ(tool_family("{{ messages }}").name, "json");
}

TEST(ToolFamilies, EveryFamilyHasACase) {
  for (const ToolFamily& row : tool_families()) {
    bool found = false;
    for (const Case& one : kCases) found = found || row.name == one.family;
    EXPECT_TRUE(found) << row.name;
  }
}

}  // namespace
}  // namespace coppice
