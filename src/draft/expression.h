// The drafter expression shared by command line, configuration and API, for example
//   stage(draft.gguf, ngram(code.ngram) | lookup) | lookup
// Grammar: mix := drafter { "|" drafter };  drafter := name [ "(" argument { "," argument } ")" ];
//          argument := path | "quoted path" | key "=" value | mix.  "none" alone is no drafter at all.
// A bare argument is a mix when it starts with the name of a drafter followed by "(", "|", "," or ")"; else a
// path.
#pragma once

#include <coppice/error.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::core {

struct DrafterNode;
using DrafterMix = std::vector<DrafterNode>;

struct DrafterNode {
  std::string name;
  std::vector<std::string> files;                            // positional path arguments
  std::vector<std::pair<std::string, std::string>> options;  // key = value
  DrafterMix inner;                                          // a nested mix (stage)
  int column = 1;                                            // where it stands, for messages
};

// Errors give the column and what would be right. Depth and length are bounded. `none` gives an empty mix.
Result<DrafterMix> parse_drafters(std::string_view text);
std::string to_string(const DrafterMix& mix);

}  // namespace coppice::core
