#include "jinja/filters.h"

#include <fmt/format.h>

#include "base/check.h"
#include "jinja/print.h"

namespace coppice::core::jinja {
namespace {

const FilterRow* find(std::string_view name) {
  for (const auto table : {text_filters(), item_filters(), number_filters()})
    for (const FilterRow& row : table)
      if (row.name == name) return &row;
  return nullptr;
}

}  // namespace

bool filter_exists(std::string_view name) { return find(name) != nullptr; }

Result<Value> Runtime::filter(std::string_view name, const Value& self, const Arguments& arguments) {
  const FilterRow* row = find(name);
  if (!row) return fail(fmt::format("there is no filter {}", in_quotes(name)));
  COPPICE_TRY_STATUS(charge(kStep));
  return row->run(*this, self, arguments);
}

Result<std::int64_t> whole_or(const Value* slot, std::int64_t otherwise, std::string_view what) {
  std::int64_t number = otherwise;
  if (slot && !slot->to_integer(number))
    return fail(fmt::format("{} wants a whole number, not a {}", what, type_name(*slot)));
  return number;
}

}  // namespace coppice::core::jinja
