// Text that knows where its bytes come from: the template itself, or data (messages, tools, documents) that
// it was rendered with. Only the former may become control tokens later, so every operation keeps the
// difference.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::core::jinja {

struct TextRange {
  std::size_t begin, end;  // bytes; not empty
  friend bool operator==(const TextRange&, const TextRange&) = default;
};

enum class Origin { own, data };

class Text {
 public:
  Text() = default;
  explicit Text(std::string bytes, Origin origin = Origin::own);

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // What came from data: in ascending order, neither overlapping nor touching.
  std::span<const TextRange> data() const { return data_; }
  bool any_data(std::size_t begin, std::size_t end) const;

  void append(std::string_view bytes, Origin origin = Origin::own);
  void append(const Text& text) { append(text, 0, text.size()); }
  void append(const Text& text, std::size_t begin, std::size_t end);  // a part of it
  Text slice(std::size_t begin, std::size_t end) const;

  // What the filter `safe` says: `+` with other text escapes that text for HTML.
  bool markup = false;

 private:
  void mark(std::size_t begin, std::size_t end);

  std::string bytes_;
  std::vector<TextRange> data_;
};

}  // namespace coppice::core::jinja
