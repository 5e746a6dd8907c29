#include "grammar/code_points.h"

#include <algorithm>
#include <array>

namespace coppice::core::grammar {

CodePoints::CodePoints(std::initializer_list<PointRange> ranges) {
  for (const PointRange& range : ranges) add(range.first, range.last);
}

void CodePoints::add(char32_t first, char32_t last) {
  if (first > last) return;
  if (first <= 0xDFFF && last >= 0xD800) {
    if (first < 0xD800) add(first, 0xD7FF);
    if (last > 0xDFFF) add(0xE000, last);
    return;
  }
  // What it touches becomes part of it.
  std::vector<PointRange> kept;
  for (const PointRange& range : ranges_) {
    if (range.last + 1 < first || range.first > last + 1) {
      kept.push_back(range);
    } else {
      first = std::min(first, range.first);
      last = std::max(last, range.last);
    }
  }
  const auto at = std::find_if(kept.begin(), kept.end(), [&](const PointRange& r) { return r.first > last; });
  kept.insert(at, {first, last});
  ranges_ = std::move(kept);
}

void CodePoints::add(const CodePoints& other) {
  for (const PointRange& range : other.ranges_) add(range.first, range.last);
}

CodePoints CodePoints::without(const CodePoints& other) const {
  CodePoints out;
  for (PointRange range : ranges_) {
    bool left = true;
    for (const PointRange& hole : other.ranges_) {
      if (hole.last < range.first) continue;
      if (hole.first > range.last) break;
      if (hole.first > range.first) out.add(range.first, hole.first - 1);
      if (hole.last >= range.last) {
        left = false;
        break;
      }
      range.first = hole.last + 1;
    }
    if (left) out.add(range.first, range.last);
  }
  return out;
}

bool CodePoints::has(char32_t point) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const PointRange& r) { return r.first <= point && point <= r.last; });
}

void append_utf8(std::string& out, char32_t point) {
  const auto byte = [&](char32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xC0 | point >> 6);
    byte(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    byte(0xE0 | point >> 12);
    byte(0x80 | (point >> 6 & 0x3F));
    byte(0x80 | (point & 0x3F));
  } else {
    byte(0xF0 | point >> 18);
    byte(0x80 | (point >> 12 & 0x3F));
    byte(0x80 | (point >> 6 & 0x3F));
    byte(0x80 | (point & 0x3F));
  }
}

namespace {

// Both ends have the same length. Splits until every byte but the last fixed ones runs through all its
// values.
void split(PointRange range, std::vector<std::vector<ByteRange>>& out) {
  for (const char32_t most : {char32_t{0x7F}, char32_t{0x7FF}, char32_t{0xFFFF}}) {
    if (range.first <= most && range.last > most) {
      split({range.first, most}, out);
      split({most + 1, range.last}, out);
      return;
    }
  }
  std::string low, high;
  append_utf8(low, range.first);
  append_utf8(high, range.last);
  for (std::size_t i = 1; i < low.size(); ++i) {
    const char32_t tail = (char32_t{1} << (6 * i)) - 1;
    if ((range.first & ~tail) == (range.last & ~tail)) continue;
    if ((range.first & tail) != 0) {
      split({range.first, range.first | tail}, out);
      split({(range.first | tail) + 1, range.last}, out);
      return;
    }
    if ((range.last & tail) != tail) {
      split({range.first, (range.last & ~tail) - 1}, out);
      split({range.last & ~tail, range.last}, out);
      return;
    }
  }
  std::vector<ByteRange> bytes;
  for (std::size_t i = 0; i < low.size(); ++i)
    bytes.push_back({static_cast<std::uint8_t>(low[i]), static_cast<std::uint8_t>(high[i])});
  out.push_back(std::move(bytes));
}

}  // namespace

std::vector<std::vector<ByteRange>> utf8_sequences(PointRange range) {
  std::vector<std::vector<ByteRange>> out;
  split(range, out);
  return out;
}

std::optional<char32_t> next_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const char32_t lead = byte(at);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || at + length > text.size()) return std::nullopt;
  char32_t point = length == 1 ? lead : lead & (0x7F >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return std::nullopt;
    point = point << 6 | (byte(at + i) & 0x3F);
  }
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[length] || point > kLastPoint || is_surrogate(point)) return std::nullopt;
  at += length;
  return point;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kShown = 200;
  if (text.size() <= kShown) return std::string(text);
  std::size_t end = kShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::size_t utf8_length(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && next_point(text, at)) {
  }
  return at;
}

}  // namespace coppice::core::grammar
