// Sets of Unicode characters, and UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::core::grammar {

inline constexpr char32_t kLastPoint = 0x10FFFF;
inline bool is_surrogate(char32_t point) { return point >= 0xD800 && point <= 0xDFFF; }

struct PointRange {
  char32_t first, last;
};

// Surrogates are never in a set: they are no characters.
class CodePoints {
 public:
  CodePoints() = default;
  CodePoints(std::initializer_list<PointRange> ranges);
  static CodePoints all() { return {{0, kLastPoint}}; }
  void add(char32_t first, char32_t last);
  void add(const CodePoints& other);
  CodePoints without(const CodePoints& other) const;
  bool has(char32_t point) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<PointRange>& ranges() const { return ranges_; }  // ascending, apart from each other

 private:
  std::vector<PointRange> ranges_;
};

struct ByteRange {
  std::uint8_t first, last;
};

// The range as sequences of byte ranges, each of which is the UTF-8 of some of its characters.
std::vector<std::vector<ByteRange>> utf8_sequences(PointRange range);

void append_utf8(std::string& out, char32_t point);
// The character at `at`, which moves behind it; empty where the bytes are no UTF-8.
std::optional<char32_t> next_point(std::string_view text, std::size_t& at);
// For errors that quote: at most 200 bytes of a text, whole characters, and ... for the rest.
std::string shortened(std::string_view text);
// Where the first byte is that is no UTF-8; the size: all of it is.
std::size_t utf8_length(std::string_view text);

}  // namespace coppice::core::grammar
