#include "model/model.h"

#include "base/check.h"
#include "base/os.h"
#include "model/architectures.h"
#include "model/weights.h"

namespace coppice::core {

Model::Model() = default;
Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::load(std::shared_ptr<const gguf::File> file, ThreadPool& pool,
                                                 const std::function<void(double)>& progress,
                                                 PackedCache* cache) {
  DefaultFloatScope scope;  // small tensors are unpacked by this thread
  COPPICE_TRY(const Architecture* row, find_architecture(*file));
  COPPICE_TRY(ModelConfig config, row->read(*file, *row));
  COPPICE_TRY(ModelWeights weights, ModelWeights::load(*file, *row, config, pool, progress, cache));
  std::shared_ptr<Model> model(new Model());
  model->config_ = std::move(config);
  model->weights_ = std::make_unique<ModelWeights>(std::move(weights));
  model->path_ = file->path();
  return std::shared_ptr<const Model>(std::move(model));
}

std::size_t Model::weight_bytes() const { return weights_->streamed_bytes(); }
std::span<const Token> Model::head_tokens() const { return weights_->head_tokens; }

}  // namespace coppice::core
