// What stands behind the public handles.
#pragma once

#include <coppice/coppice.h>

#include <memory>

#include "base/thread_pool.h"
#include "engine/grammar_tokens.h"
#include "gguf/file.h"
#include "model/model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace coppice {

struct Tokenizer::Impl {
  std::shared_ptr<const core::Tokenizer> tokenizer;
};

struct ChatTemplate::Impl {
  std::shared_ptr<const core::Tokenizer> tokenizer;
  core::ChatTemplate chat;
};

struct Model::Impl {
  ModelInfo info;
  std::shared_ptr<const core::gguf::File> file;
  std::shared_ptr<const core::Model> model;
  std::shared_ptr<core::ThreadPool> pool;  // of this model and the drafts beside it
  Tokenizer tokenizer{nullptr};
  std::shared_ptr<core::GrammarTokens> grammar_tokens;  // of the tokenizer
  core::ChatOptions chat;                               // ModelOptions::chat_template
  Result<core::ChatTemplate> chat_template() const;     // errors without the file's name
};

// Results and handles of one file, made alike by load() of each.
Result<Tokenizer> make_tokenizer(const core::gguf::File& file);
// Makes it the process's; empty: leaves it. An error names those there are.
Status choose_isa(const std::string& isa);
Result<core::CacheType> cache_type(const std::string& name);
core::CacheType cache_type(KvType type);
std::uint64_t cache_bytes(const core::ModelConfig& config, core::CacheType type, int positions);
// At least one, and all of them the model's (evaluate.cc).
Status check_tokens(const Model& model, std::span<const Token> tokens);

}  // namespace coppice
