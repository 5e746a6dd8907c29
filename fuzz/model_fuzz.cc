// Any GGUF file as a model: its shape is refused with a sentence, or its weights load (or are refused then).
#include "base/check.h"
#include "model/architectures.h"
#include "model/head_model.h"
#include "model/model.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  static core::ThreadPool pool(1);
  const auto file = core::gguf::File::parse(std::as_bytes(std::span(data, size)), "input");
  if (!file) return 0;
  const auto config = core::read_config(**file);
  if (!config) {
    COPPICE_CHECK(config.error().message.starts_with("input: "));
    return 0;
  }
  COPPICE_CHECK(config->layers > 0 && config->vocab > 0 && config->hidden > 0);
  const auto model = core::Model::load(*file, pool);
  if (!model) COPPICE_CHECK(model.error().message.starts_with("input: "));
  return 0;
}
