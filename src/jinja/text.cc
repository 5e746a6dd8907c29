#include "jinja/text.h"

#include <algorithm>

namespace coppice::core::jinja {

Text::Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (origin == Origin::data) mark(0, bytes_.size());
}

// Ranges are only ever added at the end.
void Text::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!data_.empty() && data_.back().end == begin) {
    data_.back().end = end;
  } else {
    data_.push_back({begin, end});
  }
}

bool Text::any_data(std::size_t begin, std::size_t end) const {
  const auto after = std::upper_bound(data_.begin(), data_.end(), begin,
                                      [](std::size_t at, const TextRange& range) { return at < range.end; });
  return after != data_.end() && after->begin < end;
}

void Text::append(std::string_view bytes, Origin origin) {
  const std::size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (origin == Origin::data) mark(begin, bytes_.size());
}

void Text::append(const Text& text, std::size_t begin, std::size_t end) {
  const std::size_t base = bytes_.size();
  bytes_.append(text.bytes_, begin, end - begin);
  auto range = std::upper_bound(text.data_.begin(), text.data_.end(), begin,
                                [](std::size_t at, const TextRange& r) { return at < r.end; });
  for (; range != text.data_.end() && range->begin < end; ++range)
    mark(base + std::max(range->begin, begin) - begin, base + std::min(range->end, end) - begin);
}

Text Text::slice(std::size_t begin, std::size_t end) const {
  Text part;
  part.append(*this, begin, end);
  part.markup = markup;
  return part;
}

}  // namespace coppice::core::jinja
