// Any bytes as a corpus shard: refused with a sentence, or every text in it can be read.
#include <cstring>
#include <vector>

#include "base/check.h"
#include "corpus/corpus_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  std::vector<std::uint64_t> aligned((size + 7) / 8);
  if (size > 0) std::memcpy(aligned.data(), data, size);
  const auto shard = core::CorpusShard::parse(std::as_bytes(std::span(aligned)).first(size), "input");
  if (!shard) {
    COPPICE_CHECK(shard.error().message.starts_with("input: "));
    return 0;
  }
  const core::CorpusShape& shape = shard->shape();
  std::uint64_t sum = 0;
  for (int i = 0; i < shard->texts(); ++i) {
    const core::CorpusRecordView text = shard->text(i);
    COPPICE_CHECK(text.start >= 1 && text.start <= static_cast<int>(text.ids.size()));
    for (const coppice::Token token : text.ids) COPPICE_CHECK(token >= 0 && token < shape.vocab);
    for (int p = text.start; p < static_cast<int>(text.ids.size()); ++p) {
      for (const coppice::Token token : text.top_tokens(p)) COPPICE_CHECK(token >= 0 && token < shape.vocab);
      for (const std::uint16_t half : text.top_logprobs(p)) sum += half;
    }
    for (const std::uint16_t half : text.features) sum += half;
  }
  return sum == 1 ? 1 : 0;  // so that what was read is used
}
