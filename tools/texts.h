// Token texts that a model wrote, one JSON object a line: {"ids": [...], "start": n, "kind": "...",
// "temperature": t}; ids from `start` on were generated.
#pragma once

#include <coppice/sampling.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sample/sampler.h"

namespace coppice::tools {

struct Text {
  std::string kind;
  std::vector<Token> ids;
  std::size_t start = 0;
  double temperature = 0;
  // How it was drawn, where the noise is known (coppice_write_texts).
  bool keyed = false;
  Sampling sampling;
};

inline Result<std::vector<Text>> read_texts(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail("cannot read " + path);
  std::vector<Text> texts;
  std::string line;
  while (std::getline(in, line)) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("ids"))
      return fail(path + ", line " + std::to_string(texts.size() + 1) + ": {\"ids\": [...]} is expected");
    Text text;
    text.ids = json["ids"].get<std::vector<Token>>();
    text.start = json.value("start", std::size_t{0});
    text.kind = json.value("kind", "text");
    text.temperature = json.value("temperature", 0.0);
    text.keyed = json.contains("stream") && text.temperature > 0;
    if (text.keyed) {
      text.sampling.temperature = static_cast<float>(text.temperature);
      text.sampling.top_k = json.value("top_k", 0);
      text.sampling.seed = json.value("seed", std::uint64_t{0});
      text.sampling.stream = json.value("stream", std::uint32_t{0});
    }
    if (text.ids.size() > text.start + 1) texts.push_back(std::move(text));
  }
  return texts;
}

// Knows the noise if the text says so; else greedy. The features are the same.
inline Result<core::Sampler> sampler_of(const Text& text, int vocab) {
  return core::Sampler::make(text.keyed ? text.sampling : Sampling{}, vocab, {});
}

}  // namespace coppice::tools
