// Methods of values: a row each in the tables of methods.cc.
#pragma once

#include "jinja/runtime.h"

namespace coppice::core::jinja {

struct MethodRow {
  std::string_view name;
  Result<Value> (*run)(Runtime& runtime, const Value& self, const Arguments& arguments);  // null: not allowed
};

}  // namespace coppice::core::jinja
