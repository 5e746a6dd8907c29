// Python's methods of str, on text that knows where its bytes come from. Places and lengths count characters.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "jinja/text.h"
#include "jinja/unicode.h"

namespace coppice::core::jinja {

enum class Side { left, right, both };

// Without `characters`: whitespace.
Text strip(const Text& text, const std::optional<Text>& characters, Side side);
// At whitespace without `separator`, which is not empty; at most `most` cuts unless that is negative, from
// the right if `from_right`.
std::vector<Text> split(const Text& text, const std::optional<Text>& separator, std::int64_t most,
                        bool from_right);
std::vector<Text> split_lines(const Text& text, bool keep_ends);
// The first `most` of them; all if that is negative.
Text replace(const Text& text, const Text& old, const Text& with, std::int64_t most);
Text join(const Text& separator, const std::vector<Text>& parts);

Text change_case(const Text& text, Case wanted);
Text capitalize(const Text& text);
Text swap_case(const Text& text);
Text title(const Text& text);         // str.title: a word is a run of cased letters
Text title_filter(const Text& text);  // the filter: words are parted by whitespace, hyphens and brackets

// text[start:stop:step] for a start and stop in range, step not 0.
Text slice_characters(const Text& text, std::int64_t start, std::int64_t count, std::int64_t step);
// Where character number `index` begins; the text's size if there are fewer.
std::size_t byte_of(std::string_view text, std::int64_t index);
// Python's start and stop of a search: negative ones count from the end.
struct Window {
  std::size_t begin, end;  // bytes
  std::int64_t first;      // character at begin
  bool possible;           // false: start lies behind the end
};
Window window(std::string_view text, std::optional<std::int64_t> start, std::optional<std::int64_t> stop);

// str.isupper and so on: is there a character, and do all have it?
bool all_flags(std::string_view text, std::uint16_t wanted);
bool is_upper(std::string_view text);
bool is_lower(std::string_view text);
bool is_title(std::string_view text);

}  // namespace coppice::core::jinja
