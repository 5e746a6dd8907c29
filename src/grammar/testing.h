// For this room's tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/machine.h"

namespace coppice::core::grammar {

inline std::shared_ptr<const Compiled> shared(Result<Compiled> compiled) {
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  if (!compiled) return nullptr;
  return std::make_shared<const Compiled>(std::move(*compiled));
}

inline std::shared_ptr<const Compiled> gbnf(std::string_view text) { return shared(parse_gbnf(text)); }
inline std::shared_ptr<const Compiled> schema(std::string_view text) {
  return shared(compile_json_schema(text));
}

inline std::string refusal(const Result<Compiled>& compiled) {
  return compiled ? std::string("compiled") : compiled.error().message;
}

inline bool accepts(const std::shared_ptr<const Compiled>& grammar, std::string_view text) {
  if (grammar == nullptr) return false;
  Machine machine(grammar);
  return machine.may_end(machine.walk(machine.start(), text));
}

}  // namespace coppice::core::grammar
