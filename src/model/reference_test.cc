// The pass against the textbook: the same models with F32 weights and an f32 cache, computed here in f64,
// straight from the file, one position after another, with nothing shared but the reader.
#include <gtest/gtest.h>

#include <cmath>

#include "model/testing.h"

namespace coppice::core {
namespace {

using namespace testing;
using Vector = std::vector<double>;

class Reference {
 public:
  Reference(const gguf::File& file, const RandomModelOptions& options)
      : file_(file),
        options_(options),
        llama_(options.architecture == "llama"),
        dim_(options.hidden / options.heads) {}

  Vector logits(std::span<const Token> tokens) {
    keys_.assign(options_.layers, {});
    values_ = keys_;
    Vector result;
    for (std::size_t position = 0; position < tokens.size(); ++position)
      result = step(tokens[position], position);
    return result;
  }

 private:
  Vector step(Token token, std::size_t position) {
    Vector x = row("token_embd.weight", token);
    if (!llama_) add(x, row("position_embd.weight", static_cast<int>(position)));
    for (int layer = 0; layer < options_.layers; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      add(x, attention(norm(x, block + "attn_norm"), block, layer, position));
      const Vector normed = norm(x, block + "ffn_norm");
      Vector inner = linear(normed, block + "ffn_up");
      if (llama_) {
        const Vector gate = linear(normed, block + "ffn_gate");
        for (std::size_t i = 0; i < inner.size(); ++i) inner[i] *= gate[i] / (1 + std::exp(-gate[i]));
      } else {
        for (double& v : inner)
          v = 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
      }
      add(x, linear(inner, block + "ffn_down"));
    }
    return linear(norm(x, "output_norm"), options_.tied_head ? "token_embd" : "output");
  }

  Vector attention(const Vector& x, const std::string& block, int layer, std::size_t position) {
    Vector q, k, v;
    if (llama_) {
      q = linear(x, block + "attn_q"), k = linear(x, block + "attn_k"), v = linear(x, block + "attn_v");
      rotate(q, position), rotate(k, position);
    } else {
      const Vector all = linear(x, block + "attn_qkv");
      const auto third = static_cast<std::ptrdiff_t>(all.size() / 3);
      q.assign(all.begin(), all.begin() + third);
      k.assign(all.begin() + third, all.begin() + 2 * third);
      v.assign(all.begin() + 2 * third, all.end());
    }
    keys_[layer].push_back(k), values_[layer].push_back(v);
    Vector out(q.size());
    for (int head = 0; head < options_.heads; ++head) {
      const int kv = head / (options_.heads / options_.kv_heads);
      Vector chance;
      double total = 0;
      for (const Vector& key : keys_[layer]) {
        double score = 0;
        for (int d = 0; d < dim_; ++d) score += q[head * dim_ + d] * key[kv * dim_ + d];
        chance.push_back(std::exp(score / std::sqrt(dim_)));
        total += chance.back();
      }
      for (std::size_t p = 0; p < chance.size(); ++p)
        for (int d = 0; d < dim_; ++d)
          out[head * dim_ + d] += chance[p] / total * values_[layer][p][kv * dim_ + d];
    }
    return linear(out, block + "attn_output");
  }

  void rotate(Vector& x, std::size_t position) const {
    for (std::size_t i = 0; i < x.size(); i += 2) {
      const double angle =
          static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(i % dim_) / dim_);
      const double a = x[i], b = x[i + 1];
      x[i] = a * std::cos(angle) - b * std::sin(angle);
      x[i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
  }

  Vector norm(const Vector& x, const std::string& name) const {
    const double n = static_cast<double>(x.size());
    double mean = 0, square = 0;
    if (!llama_)
      for (const double v : x) mean += v / n;
    for (const double v : x) square += (v - mean) * (v - mean) / n;
    Vector out = row(name + ".weight", 0);
    for (std::size_t i = 0; i < x.size(); ++i) out[i] *= (x[i] - mean) / std::sqrt(square + 1e-5);
    if (!llama_) add(out, row(name + ".bias", 0));
    return out;
  }

  Vector linear(const Vector& x, const std::string& name) const {
    const gguf::Tensor* tensor = file_.tensor(name + ".weight");
    Vector out;
    for (int i = 0; i < tensor->shape[1]; ++i) {
      const Vector weights = row(name + ".weight", i);
      double sum = 0;
      for (std::size_t k = 0; k < x.size(); ++k) sum += weights[k] * x[k];
      out.push_back(sum);
    }
    if (file_.tensor(name + ".bias") != nullptr) add(out, row(name + ".bias", 0));
    return out;
  }

  Vector row(const std::string& name, int index) const {
    const gguf::Tensor* tensor = file_.tensor(name);
    std::vector<float> values(tensor->shape[0]);
    tensor->format->unpack(tensor->data + index * tensor->shape[0] * 4, values.data(), tensor->shape[0]);
    return {values.begin(), values.end()};
  }

  static void add(Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  const gguf::File& file_;
  const RandomModelOptions options_;
  const bool llama_;
  const int dim_;
  std::vector<std::vector<Vector>> keys_, values_;  // [layer][position]
};

TEST(Reference, BothArchitecturesAgreeWithTheTextbook) {
  ThreadPool pool(2);
  for (const char* architecture : {"llama", "gpt2"})
    for (const bool tied : {true, false}) {
      RandomModelOptions options;
      options.architecture = architecture;
      options.kv_heads = architecture == std::string("llama") ? 2 : 4;
      options.formats = {"F32"};
      options.embedding_format = "F32";
      options.tied_head = tied;
      const auto bytes = *random_model(options);
      const auto tokens = some_tokens(20, options.vocab);
      const Vector expected = Reference(**gguf::File::parse(bytes, "test"), options).logits(tokens);
      ContextOptions context_options;
      context_options.kv.type = CacheType::f32;
      auto context = make_context(*load_bytes(bytes, pool), pool, context_options);
      const auto logits = run_chain(*context, *context->cache().open(), tokens).back();
      for (int i = 0; i < options.vocab; ++i)
        EXPECT_NEAR(logits[i], expected[i], 1e-4) << architecture << " " << i;
    }
}

}  // namespace
}  // namespace coppice::core
