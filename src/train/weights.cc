#include "train/weights.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/os.h"
#include "draft/katz.h"
#include "gguf/split.h"
#include "model/architectures.h"
#include "text/vocabulary.h"

namespace coppice::core::train {

Result<std::vector<float>> read_values(const gguf::File& file, const std::string& name,
                                       std::vector<std::int64_t> shape) {
  const gguf::Tensor* tensor = file.tensor(name);
  if (tensor == nullptr) return fail(fmt::format("{}: has no tensor \"{}\"", file.path(), name));
  shape.resize(4, 1);
  if (!std::equal(shape.begin(), shape.end(), tensor->shape))
    return fail(fmt::format("{}: tensor \"{}\" has shape [{}, {}]; [{}, {}] is wanted", file.path(), name,
                            tensor->shape[0], tensor->shape[1], shape[0], shape[1]));
  std::vector<float> values(static_cast<std::size_t>(tensor->values()));
  tensor->format->unpack(tensor->data, values.data(), tensor->values());
  return values;
}

const Format& integer_format() { return *find_format("I64"); }

Result<Target> Target::open(const std::string& path) {
  Target target;
  COPPICE_TRY(target.file, gguf::File::open(path));
  COPPICE_TRY(target.config, read_config(*target.file));
  const ModelConfig& config = target.config;
  if (!plain_llama(config) || config.rope_dims != config.head_dim)
    return fail(fmt::format("{}: architecture {} is not one that can be trained for; llama-shaped ones are",
                            path, config.architecture));
  COPPICE_TRY(const Vocabulary vocabulary, Vocabulary::read(*target.file));
  target.end_tokens = vocabulary.end_tokens;
  target.vocabulary_hash = core::vocabulary_hash(vocabulary.tokens);
  target.hash = to_hex(gguf::hash_of_parts(*target.file));
  return target;
}

Result<std::vector<float>> Target::block(int layer, const char* role, std::vector<std::int64_t> shape) const {
  return read_values(*file, fmt::format("blk.{}.{}.weight", layer, role), std::move(shape));
}

Result<std::vector<float>> Target::embedding() const {
  return read_values(*file, "token_embd.weight", {config.hidden, config.vocab});
}

Result<std::vector<float>> Target::output() const {
  if (config.tied_head) return embedding();
  return read_values(*file, "output.weight", {config.hidden, config.vocab});
}

Result<std::vector<float>> Target::output_norm() const {
  return read_values(*file, "output_norm.weight", {config.hidden});
}

}  // namespace coppice::core::train
