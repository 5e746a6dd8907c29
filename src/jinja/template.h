// A chat template: a program in the part of Jinja that such templates use, run with bounded time and memory.
// What it writes is what the jinja2 package writes with transformers' settings, byte for byte; where that
// raises, this fails.
#pragma once

#include <coppice/error.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace coppice::core::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

struct RenderOptions {
  Limits limits;
  std::int64_t now = 0;  // what strftime_now shows: seconds since 1970, of the local clock
};

struct Program;

// Any number of threads may render one.
class Template {
 public:
  // Errors begin with line and column, as those of render() do.
  static Result<Template> parse(std::string_view source);

  // Later variables of the same name win.
  Result<Text> render(const Variables& variables, const RenderOptions& options = {}) const;
  // Does it use a variable of that name anywhere?
  bool mentions(std::string_view variable) const;

 private:
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace coppice::core::jinja
