// Fill in the middle: a prompt of what stands before a gap and what stands behind it, for models that were
// trained on such.
#pragma once

#include <coppice/coppice.h>

#include <optional>
#include <string_view>
#include <vector>

namespace coppice::serve {

// Nothing if the vocabulary has none of the known control tokens for it.
std::optional<std::vector<Token>> infill_prompt(const Tokenizer& tokenizer, std::string_view before,
                                                std::string_view behind);

}  // namespace coppice::serve
