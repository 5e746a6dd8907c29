#include "text/tokenizer.h"
#include "text/unicode.h"

namespace coppice::core {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

// One U+FFFD for each longest part that could have begun a character, as the Unicode standard recommends
// (section 3.9) and browsers and Python do.
void Utf8Stream::push(std::string_view bytes, std::string& out) {
  held_ += bytes;
  std::size_t at = 0;
  while (at < held_.size()) {
    const int length = utf8_length(std::string_view(held_).substr(at));
    if (length == 0) break;
    if (length > 0) {
      out.append(held_, at, static_cast<std::size_t>(length));
      at += static_cast<std::size_t>(length);
    } else {
      out += kReplacement;
      at += static_cast<std::size_t>(-length);
    }
  }
  held_.erase(0, at);
}

std::string Utf8Stream::push(std::string_view bytes) {
  std::string out;
  push(bytes, out);
  return out;
}

std::string Utf8Stream::finish() {
  const bool cut = !held_.empty();
  held_.clear();
  return cut ? std::string(kReplacement) : std::string();
}

}  // namespace coppice::core
