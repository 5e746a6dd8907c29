#include "jinja/template.h"

#include <algorithm>

#include "base/check.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"

namespace coppice::core::jinja {

Result<Template> Template::parse(std::string_view source) {
  COPPICE_TRY(Program program, jinja::parse(source));
  return Template(std::make_shared<const Program>(std::move(program)));
}

bool Template::mentions(std::string_view variable) const {
  return std::find(program_->names.begin(), program_->names.end(), variable) != program_->names.end();
}

Result<Text> Template::render(const Variables& variables, const RenderOptions& options) const {
  Runtime runtime(options.limits, options.now);
  auto globals = std::make_shared<Scope>();
  const auto symbol_of = [&](std::string_view name) {
    return std::find(program_->names.begin(), program_->names.end(), name) - program_->names.begin();
  };
  const auto known = [&](std::ptrdiff_t symbol) {
    return symbol < static_cast<std::ptrdiff_t>(program_->names.size());
  };
  for (const auto& [name, run] : builtin_functions()) {
    const auto symbol = symbol_of(name);
    if (!known(symbol)) continue;
    COPPICE_TRY(Function * function, runtime.make<Function>(name, run));
    globals->set(static_cast<Symbol>(symbol), Value(static_cast<Object*>(function)));
  }
  for (const auto& [name, value] : variables) {
    const auto symbol = symbol_of(name);
    if (known(symbol)) globals->set(static_cast<Symbol>(symbol), value);
  }
  return Interpreter(*program_, runtime, std::move(globals)).run();
}

}  // namespace coppice::core::jinja
