// A model file with its tokenizer.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings.h"
#include "convert.h"

namespace coppice::python {
namespace {

using Ids = std::vector<Token>;

Model load(const std::string& path, int threads, const std::string& chat_template) {
  ModelOptions options;
  options.threads = threads;
  options.chat_template.program = chat_template;
  return value(Model::load(path, options));
}

nb::dict info(const Model& model) {
  const ModelInfo& i = model.info();
  nb::dict out;
  out["path"] = text(i.path);
  out["name"] = text(i.name);
  out["architecture"] = text(i.architecture);
  const std::pair<const char*, int> numbers[] = {{"vocab", i.vocab},
                                                 {"hidden", i.hidden},
                                                 {"layers", i.layers},
                                                 {"heads", i.heads},
                                                 {"kv_heads", i.kv_heads},
                                                 {"head_dim", i.head_dim},
                                                 {"context_length", i.context_length}};
  for (const auto& [name, number] : numbers) out[name] = number;
  out["parameters"] = i.parameters;
  out["file_bytes"] = i.file_bytes;
  out["weight_bytes"] = i.weight_bytes;
  return out;
}

nb::bytes bytes_of(const std::string& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

void check_ids(const Tokenizer& tokenizer, const Ids& ids) {
  for (const Token id : ids)
    if (id < 0 || id >= tokenizer.size())
      throw Failure("token " + std::to_string(id) + " is not in the vocabulary; it has 0 to " +
                    std::to_string(tokenizer.size() - 1));
}

nb::bytes decode(const Model& model, const Ids& ids, bool show_special) {
  check_ids(model.tokenizer(), ids);
  return bytes_of(model.tokenizer().decode(ids, show_special));
}

nb::bytes piece(const Model& model, Token id) {
  check_ids(model.tokenizer(), {id});
  return bytes_of(model.tokenizer().piece(id));
}

}  // namespace

void bind_model(nb::module_& m) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Model>(m, "Model")
      .def_static("load", &load, nb::arg("path"), nb::arg("threads"), nb::arg("chat_template"), Release())
      .def("info", &info)
      .def(
          "encode",
          [](const Model& model, const std::string& text, bool parse_special, bool begin) {
            return model.tokenizer().encode(text, parse_special, begin);
          },
          nb::arg("text"), nb::arg("parse_special"), nb::arg("begin"), Release())
      .def("decode", &decode, nb::arg("ids"), nb::arg("show_special"))
      .def("piece", &piece)
      .def("ends_text", [](const Model& model, Token id) { return model.tokenizer().ends_text(id); })
      .def("bos", [](const Model& model) { return model.tokenizer().bos(); })
      .def("eos", [](const Model& model) { return model.tokenizer().eos(); });
}

}  // namespace coppice::python
