// Filters: a row each in the tables at the end of filters_text.cc, filters_items.cc and filters_numbers.cc.
#pragma once

#include <span>

#include "jinja/runtime.h"

namespace coppice::core::jinja {

struct FilterRow {
  std::string_view name;
  Result<Value> (*run)(Runtime& runtime, const Value& self, const Arguments& arguments);
};

std::span<const FilterRow> text_filters();
std::span<const FilterRow> item_filters();
std::span<const FilterRow> number_filters();

// A flag like `reverse=true`; `otherwise` where it was not given.
inline bool flag(const Value* slot, bool otherwise) { return slot ? truth(*slot) : otherwise; }
Result<std::int64_t> whole_or(const Value* slot, std::int64_t otherwise, std::string_view what);

}  // namespace coppice::core::jinja
