#include "text/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace coppice::core {
namespace {

// Levenshtein's distance, by one row of its table.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const std::size_t exchanged = diagonal + (a[i] != b[k] ? 1 : 0);
      diagonal = row[k + 1];
      row[k + 1] = std::min({row[k] + 1, row[k + 1] + 1, exchanged});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_names(std::string_view name, const std::vector<std::string_view>& names) {
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const std::string_view known : names) found.emplace_back(edits(name.substr(0, 64), known), known);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  found.resize(std::min<std::size_t>(found.size(), 3));
  std::string text;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i > 0) text += i + 1 == found.size() ? " or " : ", ";
    text += found[i].second;
  }
  return text;
}

}  // namespace coppice::core
