// Fill in the middle: a prompt of what stands before a gap and what stands behind it, for models that were
// trained on such.
#pragma once

#include <coppice/coppice.h>

#include <optional>
#include <string_view>
#include <vector>

namespace coppice::serve {

// Nothing if the file names no control tokens for it and the vocabulary has none that are known.
std::optional<std::vector<Token>> infill_prompt(const Tokenizer& tokenizer, std::string_view before,
                                                std::string_view behind);

}  // namespace coppice::serve
