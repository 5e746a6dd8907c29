// What stands behind the public handle.
#pragma once

#include <coppice/grammar.h>

#include <memory>

#include "grammar/compiled.h"

namespace coppice {

struct Grammar::Impl {
  std::shared_ptr<const core::grammar::Compiled> compiled;
};

}  // namespace coppice
