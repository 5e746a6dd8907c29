// Between the library's values and Python's. Everything here needs the GIL.
#pragma once

#include <coppice/coppice.h>
#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::python {

namespace nb = nanobind;

// Becomes coppice.Error, with the library's sentence.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check(const Status& status) {
  if (!status) throw Failure(status.error().message);
}

template <class T>
T value(Result<T>&& result) {
  if (!result) throw Failure(result.error().message);
  return *std::move(result);
}

// Bytes that are no UTF-8 become the replacement character, as everywhere a person reads a model's text.
nb::str text(std::string_view bytes);
// A dict whose keys are the fields of the dataclasses in coppice/_results.py.
nb::dict stats(const Stats& stats);
nb::dict generation(const Generation& generation, bool logprobs);
// ([ids], [sources]) of what one pass brought; a source is the drafter's number, -1 for nobody.
nb::tuple ids_and_sources(const std::vector<EmittedToken>& tokens);

}  // namespace coppice::python
