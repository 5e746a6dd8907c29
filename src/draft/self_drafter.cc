#include "draft/self_drafter.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "draft/arguments.h"
#include "model/blocks.h"

namespace coppice::core {
namespace {

constexpr std::string_view kCalibration =
    "The harbour of the old town had been empty for years. When the first ships came back, people stood on "
    "the wall and counted them: three from the south, one with a broken mast. Nobody knew who had sent them, "
    "but by the evening every house had a guest, and every guest had a different story to tell.\n\n"
    "Question: How can I keep bread fresh for longer?\n"
    "Answer: There are a few simple ways:\n"
    "1. Wrap it in a clean cloth and keep it in a bread box, away from heat and light.\n"
    "2. Slice it and freeze what you will not eat within two days.\n"
    "3. Do not put it into the refrigerator, because it dries out faster there.\n\n"
    "def longest_word(text):\n"
    "    \"\"\"Return the longest word of a text, the first one if there are several.\"\"\"\n"
    "    best = \"\"\n"
    "    for word in text.split():\n"
    "        if len(word) > len(best):\n"
    "            best = word\n"
    "    return best\n\n"
    "A train leaves at 9:40 and arrives at 11:25. The journey therefore takes 1 hour and 45 minutes, which "
    "is "
    "105 minutes. At an average speed of 80 kilometres per hour, it travels 80 * 1.75 = 140 kilometres.\n";

tl::unexpected<Error> refuse(std::string_view text, const std::string& why) {
  return fail("layers=" + std::string(text) + ": " + why);
}

const std::string* option(const DrafterNode& node, std::string_view key) {
  for (const auto& [name, value] : node.options)
    if (name == key) return &value;
  return nullptr;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The blocks the draft keeps.
Result<std::vector<int>> blocks_of(const std::string& text, const DraftEnvironment& environment) {
  const int layers = environment.target->config().layers;
  if (!is_number(text)) return parse_blocks(text, layers);
  int count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  if (count < 1 || count > layers)
    return refuse(text,
                  "the model has " + std::to_string(layers) + " blocks; keep from 1 to so many of them");
  if (environment.tokenizer == nullptr)
    return refuse(text, "here the blocks must be named, as in layers=0-9+25-29");
  const std::vector<Token> tokens = environment.tokenizer->encode(calibration_text());
  const std::size_t most = static_cast<std::size_t>(environment.target->config().context_length);
  COPPICE_TRY(const auto influence,
              block_influence(environment.target, std::span(tokens).first(std::min(tokens.size(), most)),
                              *environment.pool));
  return most_influential(influence, count);
}

}  // namespace

std::string_view calibration_text() { return kCalibration; }

Result<std::vector<int>> parse_blocks(std::string_view text, int layers) {
  std::vector<int> blocks;
  const char* at = text.data();
  const char* end = at + text.size();
  const auto number = [&](int& value) {
    const auto parsed = std::from_chars(at, end, value);
    at = parsed.ptr;
    return parsed.ec == std::errc() && value >= 0;
  };
  while (true) {
    int first = 0;
    if (!number(first)) return refuse(text, "should be block numbers as in 0-9+25-29");
    int last = first;
    if (at < end && *at == '-' && !(++at, number(last)))
      return refuse(text, "a stretch of blocks should be two numbers, as in 0-9");
    if (last < first || last >= layers)
      return refuse(text, "there is no stretch " + std::to_string(first) + "-" + std::to_string(last) +
                              "; the blocks are numbered from 0 to " + std::to_string(layers - 1));
    for (int block = first; block <= last; ++block) blocks.push_back(block);
    if (at == end) break;
    if (*at != ',' && *at != '+') return refuse(text, "should be block numbers as in 0-9+25-29");
    ++at;
  }
  std::sort(blocks.begin(), blocks.end());
  const auto twice = std::adjacent_find(blocks.begin(), blocks.end());
  if (twice != blocks.end()) return refuse(text, "block " + std::to_string(*twice) + " is there twice");
  return blocks;
}

Status check_self(const DrafterNode& node) {
  if (option(node, "layers") != nullptr || option(node, "window") != nullptr) return {};
  return fail(
      "drafter `self` would be the model itself; say what it leaves out: self(layers=10), "
      "self(layers=0-9+25-29), self(window=256) or both");
}

Result<std::unique_ptr<Drafter>> make_self(const DrafterNode& node, const DraftEnvironment& environment) {
  const std::string* layers = option(node, "layers");
  COPPICE_CHECK(environment.target != nullptr && environment.pool != nullptr);
  ModelDrafter::Options options;
  options.name = node.name;
  options.sequences = environment.sequences;
  options.context = environment.context;
  options.cache_type = environment.cache_type;
  options.window.recent = int_option(node, "window", 0);
  options.window.sink = int_option(node, "sink", options.window.sink);
  inner_options(node, options);
  std::shared_ptr<const Model> model = environment.target;
  if (layers != nullptr) {
    COPPICE_TRY(const std::vector<int> blocks, blocks_of(*layers, environment));
    model = Model::of_blocks(model, blocks);
  }
  options.variant = model->whole();
  COPPICE_TRY(auto inner, make_inner_grower(node.inner, environment));
  COPPICE_TRY(auto made, ModelDrafter::make(std::move(model), std::move(inner), options, *environment.pool));
  return std::unique_ptr<Drafter>(std::move(made));
}

}  // namespace coppice::core
