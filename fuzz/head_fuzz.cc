// Any bytes at all that are a GGUF file: refused as a draft head for a small model with a sentence, or a pass
// of two rows over it ends, with numbers or with a sentence.
#include "base/check.h"
#include "model/head_model.h"
#include "model/random_model.h"

namespace coppice::core {
namespace {

const std::shared_ptr<const Model>& target(ThreadPool& pool) {
  static const auto kTarget = [&] {
    RandomModelOptions options;
    options.vocab = 260;
    options.hidden = options.feed_forward = 32;
    options.heads = options.kv_heads = 1;
    static const std::vector<std::byte> kBytes = *random_model(options);
    return *Model::load(*gguf::File::parse(kBytes, "target"), pool);
  }();
  return kTarget;
}

void use(const std::shared_ptr<const HeadModel>& head, ThreadPool& pool) {
  ContextOptions options;
  options.kv.positions = options.kv.slots = 16;
  options.max_rows = options.max_logits = 2;
  auto context = HeadContext::make(head, options, pool);
  if (!context) return;
  const int sequence = *(*context)->cache().open();
  COPPICE_CHECK((*context)->cache().reserve(sequence, 2));
  const std::vector<float> features(static_cast<std::size_t>(head->config().features()), 0.5f);
  const std::vector<float> hidden(static_cast<std::size_t>(head->config().block.hidden), 0.5f);
  const Token last = head->config().block.vocab - 1;
  const HeadRow rows[] = {{{sequence, 0, 0, kCommitted, kCommitted, kLogits}, 0, features.data(), nullptr},
                          {{sequence, last, 1, 3, kCommitted, kLogits}, 1, nullptr, hidden.data()}};
  if (const Status status = (*context)->forward(rows); !status)
    COPPICE_CHECK(status.error().message.starts_with("input: "));
}

}  // namespace
}  // namespace coppice::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  static core::ThreadPool pool(1);
  const auto file = core::gguf::File::parse(std::as_bytes(std::span(data, size)), "input");
  if (!file) return 0;
  const auto head = core::HeadModel::load(**file, core::target(pool), pool);
  if (head)
    core::use(*head, pool);
  else
    COPPICE_CHECK(head.error().message.starts_with("input: "));
  return 0;
}
