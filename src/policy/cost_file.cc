// The file: lines of text, so that a person can look. The last line is "end": what is cut off is noticed.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/check.h"
#include "base/hash.h"
#include "base/os.h"
#include "policy/cost_model.h"

namespace coppice::core {
namespace {

constexpr std::string_view kFirst = "coppice costs 2";

}  // namespace

std::string cost_path(const std::string& folder, std::string_view key) {
  return folder + "/" + to_hex(hash_of(std::as_bytes(std::span(key.data(), key.size())))) + ".costs";
}

Result<CostTable> load_costs(const std::string& path, std::string_view key) {
  COPPICE_TRY(const std::string text, read_file(path));
  return parse_costs(text, key, path);
}

Result<CostTable> parse_costs(const std::string& text, std::string_view key, std::string_view name) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  std::string line, word;
  const auto broken = [&](std::string_view what) { return fail(fmt::format("{}: {}", name, what)); };
  if (!std::getline(in, line) || line != kFirst)
    return broken(fmt::format("is no file of costs: it does not begin with \"{}\"", kFirst));
  if (!std::getline(in, line) || line != key) return broken("was measured on another machine or model");
  CostTable table;
  while (in >> word && word == "rows") {
    CostPoint point;
    if (!(in >> point.rows >> point.seconds)) return broken("a number is missing behind \"rows\"");
    const double before = table.points.empty() ? 0 : table.points.back().rows;
    if (!(point.rows > before) || !(point.seconds > 0) || !std::isfinite(point.seconds))
      return broken(fmt::format("rows {} in {} seconds cannot be", point.rows, point.seconds));
    table.points.push_back(point);
  }
  const bool whole = word == "context" &&
                     in >> table.per_position >> table.per_row_position >> table.prompt_row >> word &&
                     word == "end";
  if (!whole || table.points.empty()) return broken("is cut off");
  if (!(table.per_position >= 0 && table.per_row_position >= 0 && table.prompt_row > 0 &&
        table.prompt_row <= 1))
    return broken("what it says of the context cannot be");
  return table;
}

Status save_costs(const std::string& path, std::string_view key, const CostTable& table) {
  std::string text = fmt::format("{}\n{}\n", kFirst, key);
  for (const CostPoint& point : table.points) text += fmt::format("rows {} {}\n", point.rows, point.seconds);
  text +=
      fmt::format("context {} {} {}\nend\n", table.per_position, table.per_row_position, table.prompt_row);
  std::error_code ignored;  // write_file() says what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  return write_file(
      path, [&](const Append& append) { return append(std::as_bytes(std::span(text.data(), text.size()))); });
}

}  // namespace coppice::core
