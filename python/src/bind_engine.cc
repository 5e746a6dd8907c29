// The engine as many Python threads share it. The GIL is given back while it works, and Ctrl-C is looked for
// after each pass.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "bindings.h"
#include "convert.h"
#include "python_drafter.h"
#include "shared_engine.h"

namespace coppice::python {
namespace {

using Shared = std::shared_ptr<SharedEngine>;

void refuse_inside_a_drafter() {
  if (inside_a_drafter())
    throw Failure("a drafter may not ask the model that waits for its guesses; give it a model of its own");
}

Shared make_engine(const Model& model, const EngineOptions& options) {
  return std::make_shared<SharedEngine>(model, value(Engine::make(model, options)));
}

// One request under way.
class Answer {
 public:
  Answer(Shared engine, const Request& request, bool streams)
      : engine_(std::move(engine)),
        ticket_(std::make_shared<Ticket>(request, streams)),
        logprobs_(request.sampling.logprobs >= 0) {
    engine_->submit(ticket_);
  }
  ~Answer() { cancel(); }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // The next piece; None at the end.
  nb::object next() {
    if (!result_) wait();
    if (const auto piece = engine_->take_piece(*ticket_)) {
      const nb::tuple tokens = ids_and_sources(piece->tokens);
      return nb::make_tuple(text(piece->text), tokens[0], tokens[1]);
    }
    keep_result();
    return nb::none();
  }
  nb::dict result() {
    while (!result_) {
      wait();
      while (engine_->take_piece(*ticket_)) {
      }
      keep_result();
    }
    if (!*result_) throw Failure(result_->error().message);
    return generation(**result_, logprobs_);
  }
  void cancel() { engine_->cancel(*ticket_); }

 private:
  void wait() {
    refuse_inside_a_drafter();
    for (bool ready = false; !ready;) {
      {
        const nb::gil_scoped_release no_gil;
        ready = engine_->advance(*ticket_);
      }
      if (PyErr_CheckSignals() == 0) continue;
      cancel();
      throw nb::python_error();
    }
  }
  void keep_result() {
    if (auto result = engine_->take_result(*ticket_)) result_ = std::move(result);
  }

  Shared engine_;
  std::shared_ptr<Ticket> ticket_;
  bool logprobs_;
  std::optional<Result<Generation>> result_;
};

using Logits = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

// [tokens, vocab]
Logits logits(SharedEngine& engine, const std::vector<Token>& ids, const std::string& cache) {
  refuse_inside_a_drafter();
  const auto vocab = static_cast<std::size_t>(engine.model().info().vocab);
  std::unique_ptr<float[]> numbers(new float[ids.size() * vocab]);
  {
    const nb::gil_scoped_release no_gil;
    check(engine.alone([&] {
      return read_logits(engine.model(), ids, {numbers.get(), ids.size() * vocab}, cache);
    }));
  }
  float* data = numbers.release();
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  return Logits(data, {ids.size(), vocab}, owner);
}

}  // namespace

void bind_engine(nb::module_& m) {
  nb::class_<Answer>(m, "Answer")
      .def("next", &Answer::next)
      .def("result", &Answer::result)
      .def("cancel", &Answer::cancel);
  nb::class_<SharedEngine>(m, "Engine")
      .def_static("make", &make_engine, nb::arg("model"), nb::arg("options"),
                  nb::call_guard<nb::gil_scoped_release>())
      .def(
          "submit",
          [](const Shared& engine, const Request& request, bool streams) {
            refuse_inside_a_drafter();
            return std::make_unique<Answer>(engine, request, streams);
          },
          nb::arg("request"), nb::arg("streams"))
      .def("logits", &logits, nb::arg("ids"), nb::arg("cache"))
      .def("sources", &SharedEngine::sources)
      .def("bytes", &SharedEngine::bytes)
      .def("context", [](const SharedEngine& engine) { return engine.options().context; })
      .def("drafters", [](const SharedEngine& engine) { return engine.options().speculation.drafters; });
}

}  // namespace coppice::python
