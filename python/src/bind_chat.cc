// Conversations, and the template that makes a prompt of one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "convert.h"

namespace coppice::python {
namespace {

using Messages = std::vector<ChatMessage>;

std::vector<Token> chat_tokens(const Model& model, const Messages& messages, bool open_answer,
                               const ChatTemplateOptions& options) {
  return value(value(model.chat_template(options)).tokens(messages, open_answer));
}

nb::str chat_text(const Model& model, const Messages& messages, bool open_answer,
                  const ChatTemplateOptions& options) {
  return text(value(value(model.chat_template(options)).text(messages, open_answer)));
}

// What a model said, in the way that its template (`options` may have another) shows to it: the content, and
// (name, arguments) of each call.
nb::tuple tool_calls(const Model& model, const ChatTemplateOptions& options,
                     const std::vector<std::string>& names, const std::string& answer) {
  const auto chat = model.chat_template(options);
  const ToolFamily& family = tool_family(chat ? std::string_view(chat->program()) : std::string_view());
  const AnswerParts parts = read_tool_calls(family, {names, true, false}, answer);
  nb::list calls;
  for (const ToolCall& call : parts.calls)
    calls.append(nb::make_tuple(text(call.name), text(call.arguments)));
  return nb::make_tuple(text(parts.content), calls);
}

}  // namespace

void bind_chat(nb::module_& m) {
  nb::class_<ToolCall>(m, "ToolCall")
      .def(nb::init<>())
      .def_rw("id", &ToolCall::id)
      .def_rw("name", &ToolCall::name)
      .def_rw("arguments", &ToolCall::arguments);
  nb::class_<ChatMessage>(m, "ChatMessage")
      .def(nb::init<>())
      .def_rw("role", &ChatMessage::role)
      .def_rw("content", &ChatMessage::content)
      .def_rw("tool_calls", &ChatMessage::tool_calls)
      .def_rw("tool_call_id", &ChatMessage::tool_call_id)
      .def_rw("name", &ChatMessage::name);
  nb::class_<ChatTemplateOptions>(m, "ChatTemplateOptions")
      .def(nb::init<>())
      .def_rw("program", &ChatTemplateOptions::program)
      .def_rw("tools", &ChatTemplateOptions::tools)
      .def_rw("documents", &ChatTemplateOptions::documents)
      .def_rw("variables", &ChatTemplateOptions::variables);
  m.def("chat_tokens", &chat_tokens, nb::arg("model"), nb::arg("messages"), nb::arg("open_answer"),
        nb::arg("options"));
  m.def("tool_calls", &tool_calls, nb::arg("model"), nb::arg("options"), nb::arg("names"), nb::arg("answer"));
  m.def("chat_text", &chat_text, nb::arg("model"), nb::arg("messages"), nb::arg("open_answer"),
        nb::arg("options"));
}

}  // namespace coppice::python
