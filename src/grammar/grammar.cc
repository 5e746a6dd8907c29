#include <coppice/grammar.h>

#include "base/check.h"
#include "grammar/gbnf.h"
#include "grammar/grammar_impl.h"
#include "grammar/json_schema.h"
#include "grammar/machine.h"

namespace coppice {
namespace {

Result<Grammar> handle(Result<core::grammar::Compiled> compiled) {
  if (!compiled) return tl::unexpected(std::move(compiled).error());
  auto shared = std::make_shared<const core::grammar::Compiled>(std::move(*compiled));
  return Grammar(std::make_shared<const Grammar::Impl>(Grammar::Impl{std::move(shared)}));
}

}  // namespace

Result<Grammar> Grammar::parse(std::string_view text) { return handle(core::grammar::parse_gbnf(text)); }

Result<Grammar> Grammar::json_schema(std::string_view text) {
  return handle(core::grammar::compile_json_schema(text));
}

Grammar Grammar::json_object() {
  static const Grammar kGrammar = [] {
    auto made = handle(core::grammar::compile_json_schema(R"({"type": "object"})"));
    COPPICE_CHECK(made.has_value());
    return *made;
  }();
  return kGrammar;
}

bool Grammar::accepts(std::string_view text) const {
  core::grammar::Machine machine(impl_->compiled);
  return machine.may_end(machine.walk(machine.start(), text));
}

}  // namespace coppice
