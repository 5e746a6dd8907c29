// The extension module coppice._coppice: include/coppice/ as the package needs it, no more. What people call
// is in python/coppice/; _coppice.pyi says what is here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "convert.h"

namespace coppice::python {
namespace {

nb::list found_models() {
  std::vector<FoundModel> found;
  {
    const nb::gil_scoped_release no_gil;
    found = find_models();
  }
  nb::list out;
  for (const FoundModel& model : found)
    out.append(nb::make_tuple(text(model.path), text(model.name), text(model.architecture), model.bytes));
  return out;
}

nb::list drafters() {
  nb::list out;
  for (const DrafterHelp& help : drafter_help())
    out.append(nb::make_tuple(text(help.name), text(help.usage), text(help.summary)));
  return out;
}

void make_random_model(const std::string& path, std::uint64_t seed, int hidden, int layers) {
  RandomModelOptions options;
  options.output = path;
  options.seed = seed;
  options.hidden = hidden;
  options.layers = layers;
  value(write_random_model(options));
}

}  // namespace
}  // namespace coppice::python

NB_MODULE(_coppice, m) {
  using namespace coppice::python;
  nb::set_leak_warnings(false);  // what is alive when the interpreter ends is no leak
  nb::exception<Failure> error(m, "Error", PyExc_ValueError);
  error.attr("__module__") = "coppice";
  error.attr("__doc__") = "What was wrong, where, and what would be right, in one sentence.";
  bind_grammar(m);
  bind_options(m);
  bind_model(m);
  bind_chat(m);
  bind_engine(m);
  m.def("find_models", &found_models,
        "(path, name, architecture, bytes) of the GGUF files in the usual places.");
  m.def("drafter_help", &drafters, "(name, usage, summary) of the built-in drafters.");
  m.def("system_info", &coppice::system_info, "What this machine is and what is used of it, as JSON.");
  m.def("write_random_model", &make_random_model, nb::arg("path"), nb::arg("seed") = 1,
        nb::arg("hidden") = 64, nb::arg("layers") = 2, nb::call_guard<nb::gil_scoped_release>(),
        "A small model that talks nonsense, and always the same, for tests.");
}
