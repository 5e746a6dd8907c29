// The parts of the extension module; each adds its classes.
#pragma once

#include <nanobind/nanobind.h>

namespace coppice::python {

void bind_options(nanobind::module_& module);
void bind_model(nanobind::module_& module);
void bind_engine(nanobind::module_& module);

}  // namespace coppice::python
