// What an answer may look like.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "convert.h"

namespace coppice::python {

void bind_grammar(nb::module_& m) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Grammar>(m, "Grammar")
      .def_static(
          "parse", [](const std::string& text) { return value(Grammar::parse(text)); }, nb::arg("text"),
          Release())
      .def_static(
          "json_schema", [](const std::string& text) { return value(Grammar::json_schema(text)); },
          nb::arg("text"), Release())
      .def_static("json_object", &Grammar::json_object, Release())
      .def(
          "accepts", [](const Grammar& grammar, const std::string& text) { return grammar.accepts(text); },
          nb::arg("text"), Release());
}

}  // namespace coppice::python
