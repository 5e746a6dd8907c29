#include "policy/gate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "base/allocation_count.h"
#include "gguf/writer.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using testing::message;

// Two inputs of each kind, two units; every value is exact in f16.
GateWeights small() {
  GateWeights w;
  w.hidden = 2;
  w.layer = 3;
  w.units = 2;
  w.mean = {1, 0, 0, 2};
  w.scale = {2, 1, 1, 0.5f};
  w.in = {1, 0, 0, 1, -1, 0.5f, 0.25f, 0};  // [input, unit]
  w.in_bias = {0.5f, -1};
  w.out = {1, -2};
  w.out_bias = 0.25f;
  return w;
}

float squashed(float sum) { return 0.5f + 1 / (1 + std::exp(-sum)); }

float alpha_of(const Gate& gate, std::vector<float> embedding, std::vector<float> hidden) {
  return gate.alpha({embedding, hidden});
}

Result<Gate> reread(const std::vector<std::byte>& bytes) {
  auto file = gguf::File::parse(bytes, "small.gate");
  if (!file) return tl::unexpected(file.error());
  return Gate::parse(**file);
}

// The file of small() without this key or tensor, and with what `change` adds (a key replaces).
std::vector<std::byte> changed(std::string_view without, const std::function<void(gguf::Writer&)>& change) {
  const std::vector<std::byte> bytes = gate_bytes(Gate(small()));
  const auto file = *gguf::File::parse(bytes, "small.gate");
  gguf::Writer writer;
  for (const gguf::Key& key : file->keys())
    if (key.name != without) writer.copy(key);
  for (const gguf::Tensor& tensor : file->tensors())
    if (tensor.name != without) writer.copy(tensor);
  change(writer);
  return writer.to_bytes();
}

std::string refusal(std::string_view without, const std::function<void(gguf::Writer&)>& change) {
  return message(reread(changed(without, change)));
}

void has(const std::string& sentence, std::string_view words) {
  EXPECT_NE(sentence.find(words), std::string::npos) << sentence;
}

TEST(Gate, IsAPerceptronOfTwoLayersOverStandardisedInputs) {
  const Gate gate(small());
  // x = {2, -1, 3, 1}: units 0.5 + 2 - 3 + 0.25 = -0.25, which is silent, and -1 - 1 + 1.5 = -0.5: silent
  // too.
  EXPECT_FLOAT_EQ(alpha_of(gate, {2, -1}, {3, 4}), squashed(0.25f));
  // x = {2, 2, -1, 0}: units 3.5 and 0.5.
  EXPECT_FLOAT_EQ(alpha_of(gate, {2, 2}, {-1, 2}), squashed(0.25f + 3.5f - 1));
}

TEST(Gate, WeightsBeyondAllMeasureSayOne) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  GateWeights w = small();
  w.in_bias = {kLargest, kLargest};
  w.out = {kLargest, -kLargest};  // infinity less infinity
  EXPECT_EQ(alpha_of(Gate(w), {1, 0}, {0, 2}), 1.0f);
  w = small();
  w.mean[0] = -kLargest;
  w.scale[0] = 0;  // an infinite difference, times nothing
  EXPECT_EQ(alpha_of(Gate(w), {kLargest, 0}, {0, 2}), 1.0f);
}

TEST(Gate, AnInputFarOutCountsAsSixDeviations) {
  const Gate gate(small());
  EXPECT_EQ(alpha_of(gate, {4, 0}, {0, 2}), alpha_of(gate, {1e30f, 0}, {0, 2}));
  EXPECT_NE(alpha_of(gate, {3, 0}, {0, 2}), alpha_of(gate, {1e30f, 0}, {0, 2}));
}

TEST(Gate, AlphaIsFromOneHalfToOneAndAHalf) {
  GateWeights w = small();
  w.out_bias = 1e6f;
  EXPECT_EQ(alpha_of(Gate(w), {1, 1}, {1, 1}), 1.5f);
  w.out_bias = -1e6f;
  EXPECT_EQ(alpha_of(Gate(w), {1, 1}, {1, 1}), 0.5f);
}

TEST(Gate, AConstantOneSaysTheSameToEverything) {
  for (const float alpha : {0.5f, 0.75f, 1.0f, 1.25f, 1.5f}) {
    const auto gate = reread(gate_bytes(Gate::constant(alpha, 2, 1)));
    ASSERT_TRUE(gate) << gate.error().message;
    EXPECT_NEAR(alpha_of(*gate, {1, 5}, {-3, 8}), alpha, 1e-6f);
    EXPECT_EQ(alpha_of(*gate, {1, 5}, {-3, 8}), alpha_of(*gate, {-7, 0}, {100, 2}));
  }
}

TEST(Gate, DoesNotAllocate) {
  const Gate gate(small());
  const std::vector<float> embedding = {1, 2}, hidden = {3, 4};
  const testing::AllocationCount count;
  (void)gate.alpha({embedding, hidden});
  EXPECT_EQ(count.so_far(), 0);
}

TEST(GateFile, ReadsBackWhatWasWritten) {
  const std::string path = ::testing::TempDir() + "coppice_gate_test_" + std::to_string(::getpid()) + ".gate";
  GateOrigin origin{"target.gguf", "00ff", "draft.gguf", "ff00", "texts", "coppice train gate"};
  ASSERT_TRUE(write_gate(path, Gate(small(), origin)));
  const auto gate = Gate::read(path);
  ASSERT_TRUE(gate) << gate.error().message;
  EXPECT_EQ(gate->hidden(), 2);
  EXPECT_EQ(gate->layer(), 3);
  EXPECT_EQ(gate->weights().in, small().in);
  EXPECT_EQ(gate->weights().mean, small().mean);
  EXPECT_EQ(gate->weights().out, small().out);
  EXPECT_EQ(gate->origin().target, "target.gguf");
  EXPECT_EQ(gate->origin().draft_hash, "ff00");
  EXPECT_EQ(gate->origin().command, "coppice train gate");
  EXPECT_EQ(alpha_of(*gate, {2, 2}, {-1, 2}), alpha_of(Gate(small()), {2, 2}, {-1, 2}));
  std::filesystem::remove(path);
}

TEST(GateFile, ABadOneIsRefusedWithASentence) {
  const Format& f32 = *find_format("F32");
  has(message(Gate::read("/nowhere/a.gate")), "/nowhere/a.gate");
  has(refusal("", [](gguf::Writer& w) { w.add_text("general.architecture", "llama"); }), "is no gate");
  has(refusal("coppice.gate.hidden", [](gguf::Writer&) {}), "coppice.gate.hidden");
  has(refusal("", [](gguf::Writer& w) { w.add_u32("coppice.gate.units", 0); }), "must be from 1 to");
  has(refusal("", [](gguf::Writer& w) { w.add_u32("coppice.gate.units", 100000); }), "must be from 1 to");
  has(refusal("", [](gguf::Writer& w) { w.add_u32("coppice.gate.hidden", 3); }),
      "gate.mean has the shape 4 x 1, but must have 6 x 1");
  has(refusal("gate.out.weight", [](gguf::Writer&) {}), "tensor gate.out.weight is missing");
  has(refusal("gate.in.bias",
              [&](gguf::Writer& w) {
                const float values[] = {1, std::numeric_limits<float>::quiet_NaN()};
                w.add_values("gate.in.bias", f32, {2}, values);
              }),
      "gate.in.bias has a value that is not finite at index 1");
  has(refusal("gate.in.bias",
              [&](gguf::Writer& w) {
                const std::vector<float> values(32);
                w.add_values("gate.in.bias", *find_format("Q8_0"), {32}, values);
              }),
      "gate.in.bias has the shape 32 x 1, but must have 2 x 1");
}

TEST(GateFile, OneThatIsCutOffAnywhereIsRefused) {
  const std::vector<std::byte> bytes = gate_bytes(Gate(small()));
  const auto file = *gguf::File::parse(bytes, "small.gate");
  const gguf::Tensor& last = file->tensors().back();
  const auto end = static_cast<std::size_t>(last.data + last.bytes - bytes.data());
  for (std::size_t size = 0; size < end; ++size)
    EXPECT_FALSE(reread({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
}

TEST(Gate, IsCheckedAgainstItsTarget) {
  ThreadPool pool(1);
  RandomModelOptions shape;
  const auto model = testing::make_model(shape, pool);
  EXPECT_TRUE(Gate::constant(1, shape.hidden, shape.layers).check(*model));
  has(message(Gate::constant(1, shape.hidden + 32, 0).check(*model)), "the gate reads states of");
  has(message(Gate::constant(1, shape.hidden, shape.layers + 1).check(*model)), "states at layer");
}

TEST(Gate, ReadsTheEmbeddingThatTheTargetsFirstBlockSees) {
  ThreadPool pool(1);
  RandomModelOptions shape;
  const auto model = testing::make_model(shape, pool);
  ContextOptions options;
  options.feature_layers = {0};
  const auto context = testing::make_context(model, pool, options);
  const int sequence = *context->cache().open();
  ASSERT_TRUE(context->cache().reserve(sequence, 1));
  const Row row{sequence, 5, 0, kCommitted, kCommitted, kFeatures};
  ASSERT_TRUE(context->forward({&row, 1}));
  std::vector<float> embedding(static_cast<std::size_t>(shape.hidden));
  read_embedding(*model, 5, embedding);
  EXPECT_EQ(testing::copy(context->features(0)), embedding);
}

}  // namespace
}  // namespace coppice::core
