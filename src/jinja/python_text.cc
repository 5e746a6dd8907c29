#include "jinja/python_text.h"

#include <algorithm>

namespace coppice::core::jinja {
namespace {

bool is_space(std::string_view text, std::size_t at) {
  return (character_flags(character_at(text, at).code) & kSpace) != 0;
}

// Is the character at text[at] one of `characters`? A byte that is no character equals itself only.
bool one_of(std::string_view text, std::size_t at, std::string_view characters) {
  const std::string_view c = text.substr(at, character_at(text, at).bytes);
  for (std::size_t i = 0; i < characters.size();) {
    const std::size_t bytes = character_at(characters, i).bytes;
    if (characters.substr(i, bytes) == c) return true;
    i += bytes;
  }
  return false;
}

std::vector<Text> split_at_spaces(const Text& text, std::int64_t most) {
  const std::string& bytes = text.bytes();
  std::vector<Text> parts;
  std::size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < bytes.size() && is_space(bytes, at) == spaces) at += character_at(bytes, at).bytes;
  };
  while (true) {
    skip(true);
    if (at == bytes.size()) return parts;
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
      parts.push_back(text.slice(at, bytes.size()));
      return parts;
    }
    const std::size_t begin = at;
    skip(false);
    parts.push_back(text.slice(begin, at));
  }
}

std::vector<Text> split_at_spaces_from_right(const Text& text, std::int64_t most) {
  const std::string& bytes = text.bytes();
  std::vector<Text> parts;
  std::size_t end = bytes.size();
  const auto skip = [&](bool spaces) {
    while (end > 0) {
      const std::size_t begin = character_before(bytes, end);
      if (is_space(bytes, begin) != spaces) return;
      end = begin;
    }
  };
  while (true) {
    skip(true);
    if (end == 0) break;
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
      parts.push_back(text.slice(0, end));
      break;
    }
    const std::size_t stop = end;
    skip(false);
    parts.push_back(text.slice(end, stop));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// Every character through `change`, which gets the text and where the character is; what comes of data is
// data.
template <class Change>
Text map_characters(const Text& text, const Change& change) {
  Text out;
  out.markup = text.markup;
  const std::string& bytes = text.bytes();
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = at + character_at(bytes, at).bytes;
    out.append(change(bytes, at), text.any_data(at, end) ? Origin::data : Origin::own);
    at = end;
  }
  return out;
}

}  // namespace

Text strip(const Text& text, const std::optional<Text>& characters, Side side) {
  const std::string& bytes = text.bytes();
  const auto goes = [&](std::size_t at) {
    return characters ? one_of(bytes, at, characters->bytes()) : is_space(bytes, at);
  };
  std::size_t begin = 0, end = bytes.size();
  if (side != Side::right)
    while (begin < end && goes(begin)) begin += character_at(bytes, begin).bytes;
  while (side != Side::left && end > begin) {
    const std::size_t last = character_before(bytes, end);
    if (!goes(last)) break;
    end = last;
  }
  return text.slice(begin, end);
}

std::vector<Text> split(const Text& text, const std::optional<Text>& separator, std::int64_t most,
                        bool from_right) {
  if (!separator) return from_right ? split_at_spaces_from_right(text, most) : split_at_spaces(text, most);
  const std::string &bytes = text.bytes(), &cut = separator->bytes();
  std::vector<Text> parts;
  const auto more = [&] { return most < 0 || static_cast<std::int64_t>(parts.size()) < most; };
  if (!from_right) {
    std::size_t begin = 0;
    for (std::size_t at = 0; more() && (at = bytes.find(cut, begin)) != std::string::npos;) {
      parts.push_back(text.slice(begin, at));
      begin = at + cut.size();
    }
    parts.push_back(text.slice(begin, bytes.size()));
    return parts;
  }
  std::size_t end = bytes.size();
  while (more() && end >= cut.size()) {
    const std::size_t at = bytes.rfind(cut, end - cut.size());
    if (at == std::string::npos) break;
    parts.push_back(text.slice(at + cut.size(), end));
    end = at;
  }
  parts.push_back(text.slice(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  const std::string& bytes = text.bytes();
  std::vector<Text> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const Character c = character_at(bytes, at);
    const bool ends = (c.code >= 0x0A && c.code <= 0x0D) || (c.code >= 0x1C && c.code <= 0x1E) ||
                      c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029;
    std::size_t next = at + c.bytes;
    if (ends) {
      if (c.code == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.push_back(text.slice(begin, keep_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

Text replace(const Text& text, const Text& old, const Text& with, std::int64_t most) {
  const std::string& bytes = text.bytes();
  Text out;
  out.markup = text.markup;
  std::int64_t done = 0;
  std::size_t at = 0;
  if (old.empty()) {  // between all characters, and at both ends
    for (; most < 0 || done < most; ++done) {
      out.append(with);
      if (at == bytes.size()) return out;
      const std::size_t end = at + character_at(bytes, at).bytes;
      out.append(text, at, end);
      at = end;
    }
    out.append(text, at, bytes.size());
    return out;
  }
  for (; most < 0 || done < most; ++done) {
    const std::size_t next = bytes.find(old.bytes(), at);
    if (next == std::string::npos) break;
    out.append(text, at, next);
    out.append(with);
    at = next + old.size();
  }
  out.append(text, at, bytes.size());
  return out;
}

Text join(const Text& separator, const std::vector<Text>& parts) {
  Text out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(parts[i]);
  }
  return out;
}

Text change_case(const Text& text, Case wanted) {
  return map_characters(text, [&](std::string_view t, std::size_t at) { return change_case(t, at, wanted); });
}

Text capitalize(const Text& text) {
  return map_characters(text, [](std::string_view t, std::size_t at) {
    return change_case(t, at, at == 0 ? Case::title : Case::lower);
  });
}

Text swap_case(const Text& text) {
  return map_characters(text, [](std::string_view t, std::size_t at) {
    const std::uint16_t flags = character_flags(character_at(t, at).code);
    if (flags & kUpper) return change_case(t, at, Case::lower);
    return flags & kLower ? change_case(t, at, Case::upper)
                          : std::string(t.substr(at, character_at(t, at).bytes));
  });
}

Text title(const Text& text) {
  bool inside = false;
  return map_characters(text, [&](std::string_view t, std::size_t at) {
    const bool cased = (character_flags(character_at(t, at).code) & kCased) != 0;
    std::string changed = change_case(t, at, inside ? Case::lower : Case::title);
    inside = cased;
    return changed;
  });
}

// Each word is lowered by itself, so a sigma at its end is a final one.
Text title_filter(const Text& text) {
  const std::string& bytes = text.bytes();
  const auto parts_words = [&](std::size_t at) {
    return is_space(bytes, at) || std::string_view("-({[<").find(bytes[at]) != std::string_view::npos;
  };
  Text out;
  out.markup = text.markup;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const bool between = parts_words(begin);
    std::size_t end = begin;
    while (end < bytes.size() && parts_words(end) == between) end += character_at(bytes, end).bytes;
    const std::size_t second = begin + character_at(bytes, begin).bytes;
    out.append(change_case(text.slice(begin, second), Case::upper));
    out.append(change_case(text.slice(second, end), Case::lower));
    begin = end;
  }
  return out;
}

std::size_t byte_of(std::string_view text, std::int64_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += character_at(text, at).bytes;
  return at;
}

Text slice_characters(const Text& text, std::int64_t start, std::int64_t count, std::int64_t step) {
  const std::string& bytes = text.bytes();
  if (count <= 0) return text.slice(0, 0);
  if (step == 1) {
    const std::size_t begin = byte_of(bytes, start);
    return text.slice(begin, begin + byte_of(std::string_view(bytes).substr(begin), count));
  }
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < bytes.size(); at += character_at(bytes, at).bytes) begins.push_back(at);
  begins.push_back(bytes.size());
  Text out;
  out.markup = text.markup;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(start + i * step);
    out.append(text, begins[at], begins[at + 1]);
  }
  return out;
}

Window window(std::string_view text, std::optional<std::int64_t> start, std::optional<std::int64_t> stop) {
  const auto size = static_cast<std::int64_t>(count_characters(text));
  const auto place = [&](std::int64_t index) {
    return index < 0 ? std::max<std::int64_t>(index + size, 0) : index;
  };
  const std::int64_t first = place(start.value_or(0)), last = std::min(place(stop.value_or(size)), size);
  if (first > last) return {0, 0, 0, false};
  return {byte_of(text, first), byte_of(text, last), first, true};
}

bool all_flags(std::string_view text, std::uint16_t wanted) {
  for (std::size_t at = 0; at < text.size(); at += character_at(text, at).bytes)
    if ((character_flags(character_at(text, at).code) & wanted) == 0) return false;
  return !text.empty();
}

bool is_upper(std::string_view text) {
  bool cased = false;
  for (std::size_t at = 0; at < text.size(); at += character_at(text, at).bytes) {
    const std::uint16_t flags = character_flags(character_at(text, at).code);
    if (flags & (kLower | kTitle)) return false;
    cased = cased || (flags & kUpper);
  }
  return cased;
}

bool is_lower(std::string_view text) {
  bool cased = false;
  for (std::size_t at = 0; at < text.size(); at += character_at(text, at).bytes) {
    const std::uint16_t flags = character_flags(character_at(text, at).code);
    if (flags & (kUpper | kTitle)) return false;
    cased = cased || (flags & kLower);
  }
  return cased;
}

bool is_title(std::string_view text) {
  bool cased = false, inside = false;
  for (std::size_t at = 0; at < text.size(); at += character_at(text, at).bytes) {
    const std::uint16_t flags = character_flags(character_at(text, at).code);
    if (flags & (kUpper | kTitle)) {
      if (inside) return false;
      cased = inside = true;
    } else if (flags & kLower) {
      if (!inside) return false;
      cased = true;
    } else {
      inside = false;
    }
  }
  return cased;
}

}  // namespace coppice::core::jinja
