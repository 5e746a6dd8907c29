// A model file with its tokenizer and template.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bindings.h"
#include "convert.h"

namespace coppice::python {
namespace {

using Messages = std::vector<std::pair<std::string, std::string>>;  // role, content
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

std::vector<ChatMessage> chat_of(const Messages& messages) {
  std::vector<ChatMessage> out;
  for (const auto& [role, content] : messages) {
    ChatMessage message;
    message.role = role;
    message.content = content;
    out.push_back(std::move(message));
  }
  return out;
}

Ids chat_tokens(const Model& model, const Messages& messages, bool open_answer) {
  return value(value(model.chat_template()).tokens(chat_of(messages), open_answer));
}

nb::str chat_text(const Model& model, const Messages& messages, bool open_answer) {
  return text(value(value(model.chat_template()).text(chat_of(messages), open_answer)));
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
      .def("eos", [](const Model& model) { return model.tokenizer().eos(); })
      .def("chat_tokens", &chat_tokens, nb::arg("messages"), nb::arg("open_answer"))
      .def("chat_text", &chat_text, nb::arg("messages"), nb::arg("open_answer"));
}

}  // namespace coppice::python
