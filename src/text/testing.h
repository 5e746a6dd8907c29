// What tests of tokenizers share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "text/tokenizer.h"

namespace coppice::core::testing {

inline std::shared_ptr<const Tokenizer> make_tokenizer(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::make(std::move(vocabulary));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *tokenizer;
}

// Why no tokenizer can be made of it; empty: one can.
inline std::string error_of(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::make(std::move(vocabulary));
  return tokenizer ? std::string() : tokenizer.error().message;
}

}  // namespace coppice::core::testing
