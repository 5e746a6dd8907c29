#include "model/model.h"

#include <algorithm>

#include "base/check.h"
#include "base/os.h"
#include "model/architectures.h"
#include "model/slim.h"
#include "model/weights.h"

namespace coppice::core {

Model::Model() = default;
Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::load(std::shared_ptr<const gguf::File> file, ThreadPool& pool,
                                                 const std::function<void(double)>& progress,
                                                 PackedCache* cache) {
  DefaultFloatScope scope;  // small tensors are unpacked by this thread
  COPPICE_TRY(const Architecture* row, find_architecture(*file));
  COPPICE_TRY(ModelConfig config, read_shape(*file, *row));
  COPPICE_TRY(ModelWeights weights, ModelWeights::load(*file, *row, config, pool, progress, cache));
  std::shared_ptr<Model> model(new Model());
  model->config_ = std::move(config);
  model->weights_ = std::make_unique<ModelWeights>(std::move(weights));
  model->variants_ = make_variants(model->config_, *model->weights_);
  model->path_ = file->path();
  return std::shared_ptr<const Model>(std::move(model));
}

std::shared_ptr<const Model> Model::of_blocks(std::shared_ptr<const Model> whole,
                                              std::span<const int> blocks) {
  std::shared_ptr<Model> model(new Model());
  model->config_ = whole->config_;
  model->config_.layers = static_cast<int>(blocks.size());
  model->config_.slim = {};
  for (auto* of_layers : {&model->config_.windowed, &model->config_.unturned}) {
    for (std::size_t i = 0; i < blocks.size() && !of_layers->empty(); ++i)
      (*of_layers)[i] = (*of_layers)[static_cast<std::size_t>(blocks[i])];  // blocks rise
    if (!of_layers->empty()) of_layers->resize(blocks.size());
  }
  model->weights_ = std::make_unique<ModelWeights>(view_of_blocks(whole->config_, whole->weights(), blocks));
  model->variants_ = make_variants(model->config_, *model->weights_);
  model->path_ = whole->path_;
  model->whole_ = std::move(whole);
  return model;
}

std::span<const Variant> Model::variants() const { return variants_; }
int Model::whole() const { return std::max(static_cast<int>(config_.slim.hidden.size()), 1) - 1; }
std::size_t Model::weight_bytes() const { return variants_[whole()].streamed_bytes(); }
std::span<const Token> Model::head_tokens() const { return weights_->head_tokens; }

}  // namespace coppice::core
