// The structs of options, field by field. Wrong values are the library's business (validate(),
// Engine.make()).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "convert.h"
#include "python_drafter.h"

namespace coppice::python {
namespace {

constexpr const char* kCaches[] = {"f32", "f16", "q8_0"};  // by KvType

const char* cache_name(const EngineOptions& options) {
  return kCaches[static_cast<std::size_t>(options.cache)];
}

void set_cache(EngineOptions& options, const std::string& name) {
  for (std::size_t i = 0; i < std::size(kCaches); ++i)
    if (name == kCaches[i]) return (void)(options.cache = static_cast<KvType>(i));
  throw Failure("there is no cache type \"" + name + "\"; there is f32, f16 and q8_0");
}

const char* acceptance_name(const Sampling& sampling) {
  return sampling.acceptance == Acceptance::keyed ? "keyed" : "rejection";
}

void set_acceptance(Sampling& sampling, const std::string& name) {
  if (name != "keyed" && name != "rejection")
    throw Failure("acceptance = \"" + name + "\" is not known; it can be keyed (the same text) or rejection");
  sampling.acceptance = name == "keyed" ? Acceptance::keyed : Acceptance::rejection;
}

void bind_sampling(nb::module_& m) {
  nb::class_<Sampling>(m, "Sampling")
      .def(nb::init<>())
      .def_rw("temperature", &Sampling::temperature)
      .def_rw("top_k", &Sampling::top_k)
      .def_rw("top_p", &Sampling::top_p)
      .def_rw("min_p", &Sampling::min_p)
      .def_rw("typical_p", &Sampling::typical_p)
      .def_rw("repetition_penalty", &Sampling::repetition_penalty)
      .def_rw("presence_penalty", &Sampling::presence_penalty)
      .def_rw("frequency_penalty", &Sampling::frequency_penalty)
      .def_rw("penalty_window", &Sampling::penalty_window)
      .def_rw("logit_bias", &Sampling::logit_bias)
      .def_rw("banned", &Sampling::banned)
      .def_rw("ignore_eos", &Sampling::ignore_eos)
      .def_rw("stop", &Sampling::stop)
      .def_rw("seed", &Sampling::seed)
      .def_rw("stream", &Sampling::stream)
      .def_rw("choice", &Sampling::choice)
      .def_rw("max_tokens", &Sampling::max_tokens)
      .def_rw("logprobs", &Sampling::logprobs)
      .def_rw("grammar", &Sampling::grammar, nb::arg().none())
      .def_prop_rw("acceptance", &acceptance_name, &set_acceptance)
      .def("validate", [](const Sampling& sampling, int vocab) { check(sampling.validate(vocab)); });
}

void bind_request(nb::module_& m) {
  nb::class_<Request>(m, "Request")
      .def(nb::init<>())
      .def_rw("prompt", &Request::prompt)
      .def_rw("sampling", &Request::sampling)
      .def_rw("nodes", &Request::nodes)
      .def_rw("depth", &Request::depth)
      .def_rw("width", &Request::width)
      .def_rw("price", &Request::price)
      .def_rw("timeout_seconds", &Request::timeout_seconds)
      .def_rw("show_special", &Request::show_special);
}

void bind_engine_options(nb::module_& m) {
  nb::class_<Speculation>(m, "Speculation")
      .def_rw("drafters", &Speculation::drafters)
      .def_rw("prior", &Speculation::prior)
      .def_rw("nodes", &Speculation::nodes)
      .def_rw("depth", &Speculation::depth)
      .def_rw("width", &Speculation::width)
      .def_rw("price", &Speculation::price)
      .def_rw("pass_price", &Speculation::pass_price)
      .def_rw("policy", &Speculation::policy);
  nb::class_<EngineOptions>(m, "EngineOptions")
      .def(nb::init<>())
      .def_rw("context", &EngineOptions::context)
      .def_rw("max_requests", &EngineOptions::max_requests)
      .def_rw("chunk", &EngineOptions::chunk)
      .def_rw("positions", &EngineOptions::positions)
      .def_prop_rw("cache", &cache_name, &set_cache)
      .def_rw("speculation", &EngineOptions::speculation)
      .def(
          "add_drafter",
          [](EngineOptions& options, const std::string& name, nb::object drafter) {
            options.custom_drafters.push_back({name, value(make_python_drafter(std::move(drafter)))});
          },
          nb::arg("name"), nb::arg("drafter"));
}

}  // namespace

void bind_options(nb::module_& m) {
  bind_sampling(m);
  bind_request(m);
  bind_engine_options(m);
}

}  // namespace coppice::python
