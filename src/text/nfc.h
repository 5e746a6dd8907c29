// Unicode's normal form C (Unicode Standard Annex 15): characters and the accents behind them become one
// character where there is one. Some models read all their texts in this form.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coppice::core {

// `text` in form C; nothing if it is in that form already. Bytes that are no character stay where they are
// and join nothing. O(n log n) for a character with n marks, else O(n).
std::optional<std::string> to_nfc(std::string_view text);

}  // namespace coppice::core
