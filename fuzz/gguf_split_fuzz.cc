// Any bytes as the parts of a split model: refused with a sentence that names one of them, or every key and
// tensor can be used. The first two bytes are the length of the first part; the rest is halved.
#include <numeric>

#include "base/check.h"
#include "gguf/split.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace gguf = coppice::core::gguf;
  if (size < 2) return 0;
  const auto all = std::as_bytes(std::span(data + 2, size - 2));
  const std::size_t first = std::min<std::size_t>(data[0] | data[1] << 8, all.size());
  const auto rest = all.subspan(first);
  std::vector<gguf::Part> parts = {{"input-00001-of-00003.gguf", all.first(first)},
                                   {"input-00002-of-00003.gguf", rest.first(rest.size() / 2)},
                                   {"input-00003-of-00003.gguf", rest.subspan(rest.size() / 2)}};
  for (const std::size_t count : {1, 2, 3}) {
    // With two parts the second is all the rest.
    std::vector<gguf::Part> given(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count));
    if (count == 2) given[1].bytes = rest;
    const auto file = gguf::File::parse(given);
    if (!file) {
      COPPICE_CHECK(file.error().message.starts_with("input-0000"));
      continue;
    }
    COPPICE_CHECK((*file)->parts().size() == count);
    std::uint64_t sum = 0;
    for (const gguf::Tensor& tensor : (*file)->tensors()) {
      COPPICE_CHECK((*file)->tensor(tensor.name) == &tensor);
      COPPICE_CHECK(tensor.part >= 0 && tensor.part < static_cast<int>(count));
      sum = std::accumulate(tensor.data, tensor.data + tensor.bytes, sum,
                            [](std::uint64_t s, std::byte b) { return s + std::to_integer<unsigned>(b); });
    }
    for (const gguf::Key& key : (*file)->keys()) COPPICE_CHECK((*file)->find(key.name) == &key.value);
    if (count > 1) COPPICE_CHECK((*file)->find("split.count") == nullptr);
    hash_of_parts(**file);
  }
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto name = gguf::split_name(text)) COPPICE_CHECK(gguf::split_path(*name) == text);
  return 0;
}
