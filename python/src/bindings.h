// The parts of the extension module; each adds its classes.
#pragma once

#include <nanobind/nanobind.h>

namespace coppice::python {

void bind_grammar(nanobind::module_& module);  // before bind_options, whose Sampling has one
void bind_options(nanobind::module_& module);
void bind_model(nanobind::module_& module);
void bind_chat(nanobind::module_& module);
void bind_engine(nanobind::module_& module);

}  // namespace coppice::python
