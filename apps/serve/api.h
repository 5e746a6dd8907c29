// What a person's HTTP request means, apart from HTTP: a route and a body become an Ask, what the engine
// brings becomes bytes of an answer. Everything here is pure: no sockets, no engines, no threads. One file a
// family of routes (openai_*.cc, ollama_*.cc); routes.cc puts them behind the sockets.
#pragma once

#include <coppice/coppice.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::serve {

// An error as the API has it. `status` is the HTTP status; `param` names the field that is wrong.
struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string message;
  std::string param, code;  // empty: null
};
template <class T>
using ApiResult = tl::expected<T, ApiError>;

struct AnswerContext;
class AnswerWriter;

enum class Api { chat_completions, completions, ollama_chat, ollama_generate };

// The request field `speculation`; the same names are in the answer (docs/server.md).
struct SpeculationAsk {
  std::optional<std::string> drafters;  // a name of a mix, "lookup", or "none"
  std::optional<std::string> policy;
  std::optional<int> nodes, depth, width;
  std::optional<float> price, pass_price;
  bool trace = false;  // the tree of every pass, in the stream or in the answer
  bool stats = false;  // statistics in the answer; so too when the field is there at all
};

// What was asked, checked as far as that goes without the model.
class Ask {
 public:
  virtual ~Ask() = default;
  // Errors: not JSON, a field that is not known (named), a value out of range (named, with what would be
  // right).
  static ApiResult<std::unique_ptr<Ask>> parse(Api api, std::string_view body);

  std::string model;    // as it was named; empty: the default one
  bool stream = false;  // server-sent events (OpenAI) or JSON lines (Ollama)
  std::optional<SpeculationAsk> speculation;

  // The engine's requests: one for each of (prompt, choice), in order of their index in the answer. Prompts
  // are tokenised here, in the model's chat template where messages were given; a grammar is made here.
  // Budget and trace of `speculation` are in them; its drafters and policy choose the engine (mixes.h).
  virtual ApiResult<std::vector<Request>> requests(const Model& model) const = 0;

  // AnswerWriter::make() is this.
  virtual std::unique_ptr<AnswerWriter> writer(const Model& model, AnswerContext context) const = 0;
};

// What the answer says about the server's side.
struct AnswerContext {
  std::string id;                    // "chatcmpl-..."
  std::string model;                 // the name that the answer gives
  std::int64_t created = 0;          // seconds since 1970
  std::vector<std::string> sources;  // names of the mix's drafters, in bit order
  std::string drafters, policy;      // of the engine that answers, as the operator or the request named them
  std::string fingerprint;           // of model and build
  std::vector<int> prompt_tokens;    // of each request
  std::vector<Token> last_prompt_tokens;  // of each request: its prompt's last one
};

// Makes the bytes of the answer to one Ask. One thread at a time. Every call returns what is to be sent now:
// whole events of a stream, or, where nothing is streamed, nothing until finish(). A request that ended with
// StopReason::failed is for the caller: fail(), or an error instead of the answer. Keeps neither the Ask nor
// views of it; the model lives as long as the writer.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  static std::unique_ptr<AnswerWriter> make(const Ask& ask, const Model& model, AnswerContext context);

  virtual std::string begin() = 0;                                 // of a stream: its first events
  virtual std::string event(int index, const Event& event) = 0;    // of request `index`
  virtual std::string done(int index, Generation generation) = 0;  // request `index` is finished
  virtual std::string finish() = 0;                     // all are: the whole answer, or the stream's end
  virtual std::string fail(const ApiError& error) = 0;  // in the middle of a stream; nothing comes after it
  virtual const char* content_type() const = 0;         // "text/event-stream", ...
};

std::string error_body(Api api, const ApiError& error);  // the API's own shape, JSON text

// The other routes' bodies: /v1/tokenize, and Ollama's and OpenAI's lists of models.
ApiResult<std::string> tokenize(std::string_view body,
                                const Model& model);  // {"tokens": [...], "pieces": [...]}
struct ServedModel {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t created = 0;
  std::string architecture, format, hash;
  std::uint64_t parameters = 0;
};
std::string list_openai(std::span<const ServedModel> models);
std::string show_openai(const ServedModel& model);  // one of them: /v1/models/NAME
std::string list_ollama(std::span<const ServedModel> models);

std::string openapi_document();  // JSON: OpenAPI 3.1 of all routes

}  // namespace coppice::serve
