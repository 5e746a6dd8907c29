#include "text/show_token.h"

#include <fmt/format.h>

#include "text/unicode.h"

namespace coppice::core {

std::string show_token(std::string_view text) {
  constexpr std::size_t kLongest = 60;  // bytes
  std::string shown = "\"";
  for (std::size_t at = 0; at < text.size();) {
    if (at >= kLongest) return shown + "...\"";
    const auto byte = static_cast<unsigned char>(text[at]);
    const int length = utf8_length(text.substr(at));
    if (length <= 0 || byte < 0x20 || byte == 0x7F) {
      shown += fmt::format("\\x{:02x}", byte);
      ++at;
    } else {
      shown += text.substr(at, static_cast<std::size_t>(length));
      at += static_cast<std::size_t>(length);
    }
  }
  return shown + "\"";
}

}  // namespace coppice::core
