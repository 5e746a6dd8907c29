#include <coppice/token_texts.h>

#include "api/impl.h"

namespace coppice {

struct TokenTexts::Impl {
  std::shared_ptr<const core::Tokenizer> tokenizer;
  core::TokenBytes bytes;
  core::Utf8Stream utf8;
};

TokenTexts::TokenTexts(const Tokenizer& tokenizer, bool show_special, Token after) {
  const auto& own = tokenizer.impl().tokenizer;
  const bool begins = after == kNoToken || own->is_control(after);
  impl_ = std::make_unique<Impl>(Impl{own, core::TokenBytes(*own, show_special, begins), {}});
}

TokenTexts::TokenTexts(TokenTexts&&) noexcept = default;
TokenTexts& TokenTexts::operator=(TokenTexts&&) noexcept = default;
TokenTexts::~TokenTexts() = default;

TokenTexts::Piece TokenTexts::next(Token token) {
  Piece piece;
  piece.bytes = impl_->bytes.next(token);
  piece.text = impl_->utf8.push(piece.bytes);
  return piece;
}

std::string TokenTexts::finish() { return impl_->utf8.finish(); }

}  // namespace coppice
