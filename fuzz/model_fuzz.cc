// Any bytes at all that are a GGUF file: the loader refuses them as a model with a sentence, or a pass of
// three tokens over each of its widths ends, with numbers or with a sentence.
#include "base/check.h"
#include "model/model.h"

namespace coppice::core {
namespace {

void use(const std::shared_ptr<const Model>& model, ThreadPool& pool) {
  ContextOptions options;
  options.kv.positions = 16;
  options.kv.slots = 16;
  options.max_rows = options.max_logits = 3;
  auto context = Context::make(model, options, pool);
  if (!context) return;
  const int sequence = *(*context)->cache().open();
  COPPICE_CHECK((*context)->cache().reserve(sequence, 3));
  const Token last = model->config().vocab - 1;
  // One committed, its child in a scratch slot, and that one's.
  const Row rows[] = {{sequence, 0, 0, kCommitted, kCommitted, kLogits},
                      {sequence, last, 1, 3, kCommitted, kLogits},
                      {sequence, last / 2, 2, 4, 3, kLogits}};
  if (model->config().positions == Positions::learned && model->config().context_length < 3) return;
  for (std::size_t variant = 0; variant < model->variants().size(); ++variant) {
    (*context)->set_variant(static_cast<int>(variant));
    if (const Status status = (*context)->forward(rows); !status)
      COPPICE_CHECK(status.error().message.starts_with("input: "));
    (*context)->cache().rewind(sequence, 0);
    COPPICE_CHECK((*context)->cache().reserve(sequence, 3));
  }
}

}  // namespace
}  // namespace coppice::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  static core::ThreadPool pool(1);
  const auto file = core::gguf::File::parse({reinterpret_cast<const std::byte*>(data), size}, "input");
  if (!file) return 0;
  const auto model = core::Model::load(*file, pool);
  if (model)
    core::use(*model, pool);
  else
    COPPICE_CHECK(model.error().message.starts_with("input: "));
  return 0;
}
