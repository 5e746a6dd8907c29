// Token texts that a model wrote, one JSON object a line: {"ids": [...], "start": n, "kind": "...",
// "temperature": t}; ids from `start` on were generated. And replaying them through a grower.
#pragma once

#include <coppice/sampling.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "draft/grower.h"

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

struct Replayed {
  std::uint64_t tokens = 0;
  std::uint64_t passes = 0;
  std::uint64_t nodes = 0;
  std::uint64_t top1 = 0;          // the best first guess was right
  std::uint64_t draft_passes = 0;  // the prompt's included
  std::uint64_t trees = 0;         // a hash of all trees
};

// What a target that writes this text would have accepted, cycle by cycle. budget.nodes = 0: nothing is
// grown, every token teaches the mixer (fitting).
inline Replayed replay(core::Grower& grower, const Text& text, const core::Budget& budget,
                       const core::Sampler& sampler, std::vector<float>* weights = nullptr) {
  Replayed sum;
  core::TokenTree tree;
  std::size_t at = std::max<std::size_t>(text.start, 2);
  const std::span<const Token> ids(text.ids);
  if (at >= ids.size()) return sum;
  if (!grower.begin(0, ids.first(at), sampler)) return sum;
  while (at < ids.size()) {
    const auto committed = ids.first(at);
    tree.reset(committed.back());
    core::GrowJob job;
    job.committed = committed;
    job.sampler = &sampler;
    job.budget = budget;
    job.tree = &tree;
    if (budget.nodes > 0) grower.grow({&job, 1});
    std::size_t accepted = 0;
    int node = 0;
    do {
      node = tree.child(node, ids[at + accepted++]);
    } while (node != core::kNoNode && at + accepted < ids.size());
    for (int n = 1; n < tree.size(); ++n)
      sum.trees =
          sum.trees * 1099511628211u + static_cast<std::uint64_t>(tree.token(n)) * 257 + tree.parent(n);
    sum.top1 += tree.size() > 1 && tree.token(1) == ids[at];
    sum.nodes += static_cast<std::uint64_t>(tree.size()) - 1;
    ++sum.passes;
    sum.tokens += accepted;
    grower.observe(0, committed, ids.subspan(at, accepted));
    at += accepted;
  }
  sum.draft_passes = grower.take_cost().passes;
  if (weights != nullptr) weights->assign(grower.weights(0).begin(), grower.weights(0).end());
  grower.end(0);
  return sum;
}

}  // namespace coppice::tools
