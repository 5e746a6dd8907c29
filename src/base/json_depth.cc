#include "base/json_depth.h"

namespace coppice::core {

bool json_deeper_than(std::string_view text, int depth) {
  int open = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++open > depth) return true;
    } else if (c == '}' || c == ']') {
      --open;
    }
  }
  return false;
}

}  // namespace coppice::core
