// A drafter written in Python: any object with propose(tokens), and accepted(tokens) if it likes.
#pragma once

#include <coppice/drafter.h>
#include <nanobind/nanobind.h>

#include <map>
#include <memory>

namespace coppice::python {

// Needs the GIL to be made. Takes it whenever the engine calls, on whatever thread. An error when `drafter`
// has no propose() that can be called.
Result<std::shared_ptr<CustomDrafter>> make_python_drafter(nanobind::object drafter);

// True on a thread that is inside a Python drafter now: it may not ask the engine that waits for it.
bool inside_a_drafter();

}  // namespace coppice::python
