#include "draft/drawing.h"

#include <algorithm>

#include "draft/mixture.h"

namespace coppice::core {
namespace {

// Before anything was seen: how often the first sibling is taken, by how sure q is, and how often a later one
// when all before it were refused. About what SmolLM2 without six of its layers says of SmolLM2 at T = 1.
constexpr std::array<float, 4> kFirst = {0.45f, 0.55f, 0.7f, 0.9f};
constexpr float kLater = 0.2f;
constexpr float kWeight = 4.0f;  // worth so many nodes seen

}  // namespace

void SiblingChances::reset() {
  for (std::size_t c = 0; c < counts_.size(); ++c)
    for (std::size_t rank = 0; rank < counts_[c].size(); ++rank)
      counts_[c][rank] = {kWeight, kWeight * (rank == 0 ? kFirst[c] : kLater)};
}

int SiblingChances::sureness(std::span<const float> q) {
  const float best = *std::max_element(q.begin(), q.end());
  return best < 0.25f ? 0 : best < 0.5f ? 1 : best < 0.8f ? 2 : 3;
}

std::array<float, kMaxDrawn> SiblingChances::chances(int sureness) const {
  std::array<float, kMaxDrawn> out;
  float left = 1.0f, least = 1.0f;
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    const Count& count = counts_[static_cast<std::size_t>(sureness)][rank];
    const float chance = left * count.taken / count.tested;
    least = out[rank] = std::min(chance, least);
    left -= chance;
  }
  return out;
}

void SiblingChances::learn(int sureness, int siblings, int taken) {
  const int last = taken < 0 ? siblings - 1 : taken;
  for (int rank = 0; rank <= last; ++rank) {
    Count& count = counts_[static_cast<std::size_t>(sureness)][static_cast<std::size_t>(rank)];
    count.tested += 1;
    count.taken += rank == taken ? 1.0f : 0.0f;
  }
}

void Drawing::start(const Sampler& sampler) {
  rejection_.reset();
  if (sampler.rejects()) rejection_.emplace(sampler.key(), sampler.vocab());
  trees_ = 0;
  nodes_.clear();
  chances_.reset();
}

void Drawing::new_tree() {
  ++trees_;
  nodes_.clear();
}

int Drawing::draw(std::span<const Token> path, std::span<const float> q, int count) {
  if (nodes_.size() == nodes_.capacity()) return -1;
  Node node;
  node.key = path_key(path);
  // Spread over all 64 bits, so that the few numbers after one node's are no other node's.
  std::uint64_t number = (node.key ^ trees_ * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  number ^= number >> 29;
  node.drawn = rejection_->draw_siblings(q, std::min(count, kMaxDrawn), number, node.tokens.data());
  nodes_.push_back(node);
  return static_cast<int>(nodes_.size()) - 1;
}

const Drawing::Node* Drawing::find(std::span<const Token> path) const {
  const std::uint64_t key = path_key(path);
  for (const Node& node : nodes_)
    if (node.key == key) return &node;
  return nullptr;
}

void Drawing::learn(std::span<const Token> path, Token token) {
  const Node* node = find(path);
  if (node == nullptr || node->kept == 0) return;
  const auto end = node->tokens.begin() + node->kept;
  const auto at = std::find(node->tokens.begin(), end, token);
  chances_.learn(node->sureness, node->kept, at == end ? -1 : static_cast<int>(at - node->tokens.begin()));
}

}  // namespace coppice::core
