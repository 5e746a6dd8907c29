// The drafter expression shared by command line, configuration and API, for example
//   stage(draft.gguf, ngram(code.ngram) | lookup) | lookup
// Grammar: mix := drafter { "|" drafter };  drafter := name [ "(" argument { "," argument } ")" ];
//          argument := path | "quoted path" | key "=" value | mix.  "none" alone is no drafter at all.
// A bare argument that is a plain word (a-z, 0-9, - and _, a letter first) or such a word followed by "(" or
// "|" is a mix, whatever drafters there are; anything else is a path. A path that looks like a word, or holds
// spaces or one of ( ) , | " = is quoted; in quotes, \" and \\ stand for " and \.
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

// Errors give the column and what would be right. Length, nesting and the number of drafters are bounded.
// `none` gives an empty mix. Names are not looked up here: that is make_grower's part (registry.h).
Result<DrafterMix> parse_drafters(std::string_view text);
// One name with its arguments: how policies are named too. `kind` ("policy") begins every error.
Result<DrafterNode> parse_call(std::string_view text, std::string_view kind);
// Parses to the same mix again, columns aside.
std::string to_string(const DrafterMix& mix);

}  // namespace coppice::core
