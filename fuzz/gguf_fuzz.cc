// Any bytes at all: the reader refuses them with a sentence, or what it then says can be used to the last
// byte, and copying it out gives a file that reads the same.
#include "base/check.h"
#include "gguf/writer.h"

namespace coppice::core {
namespace {

std::uint64_t use(const gguf::Value& value) {
  std::uint64_t sum = 0;
  for (const std::string_view text : value.strings)
    for (const char c : text) sum += static_cast<unsigned char>(c);
  if (!value.is_number()) return sum;
  for (std::uint64_t i = 0; i < value.count; ++i)
    sum += static_cast<std::uint64_t>(value.integer(i)) + (value.number(i) > 0 ? 1 : 0);
  return sum;
}

void use(const gguf::Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.values()));
  tensor.format->unpack(tensor.data, values.data(), tensor.values());
  const std::int64_t bad = tensor.format->find_nonfinite(tensor.data, tensor.values());
  COPPICE_CHECK(bad >= -1 && bad < tensor.values());
  if (tensor.rank != 2 || tensor.shape[1] > 1000 || !tensor.format->weights) return;
  const auto matrix =
      pack(*tensor.format, tensor.data, static_cast<int>(tensor.shape[1]), static_cast<int>(tensor.shape[0]));
  COPPICE_CHECK(matrix);
}

void use(const gguf::File& file) {
  gguf::Writer copy;
  for (const gguf::Key& key : file.keys()) {
    use(key.value);
    COPPICE_CHECK(file.find(key.name) == &key.value);
    copy.copy(key);
  }
  for (const gguf::Tensor& tensor : file.tensors()) {
    use(tensor);
    COPPICE_CHECK(file.tensor(tensor.name) == &tensor);
    copy.copy(tensor);
  }
  const std::vector<std::byte> bytes = copy.to_bytes();
  const auto again = gguf::File::parse(bytes, "copy");
  COPPICE_CHECK(again && (*again)->keys().size() == file.keys().size());
  COPPICE_CHECK((*again)->tensors().size() == file.tensors().size());
}

}  // namespace
}  // namespace coppice::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const auto file = core::gguf::File::parse({reinterpret_cast<const std::byte*>(data), size}, "input");
  if (file) {
    core::use(**file);
  } else {
    COPPICE_CHECK(file.error().message.starts_with("input: "));
  }
  return 0;
}
