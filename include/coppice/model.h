// A model file and what belongs to it. These are handles: cheap to copy, the model lives while one of them
// does.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>
#include <coppice/tool_calls.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

// Where the time of Model::load() went, in seconds of wall time. The tokenizer may be made while the weights
// are packed, so that the parts may add up to more than the whole.
struct LoadTimes {
  double open = 0;       // the file mapped, its keys and tensors checked
  double tokenizer = 0;  // vocabulary and merges
  double weights = 0;    // scales checked, and the weights packed into the kernels' layout
  double total = 0;
};

struct ModelInfo {
  std::string path, name, architecture;
  int vocab = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int context_length = 0;  // trained
  std::uint64_t parameters = 0;
  std::size_t file_bytes = 0;
  std::size_t weight_bytes = 0;      // read by one pass
  LoadTimes load;                    // of the load() that made this handle
  bool from_packed_cache = false;    // the weights are mapped from the packed cache
  std::string packed_cache;          // with ModelOptions::packed_cache: the file
  std::string packed_cache_problem;  // why it was not used or not written, and what was done; else empty
};

// How conversations become prompts. A template is a program in Jinja; what it may look at beside the messages
// is JSON text here, as transformers' apply_chat_template takes it.
struct ChatTemplateOptions {
  std::string program;           // a template to use instead of the one in the model's file; empty: that one
  std::string name;              // what errors call it, as its file's name
  std::string tools, documents;  // arrays; empty: none
  std::string variables;         // an object, {"enable_thinking": false}; empty: none
};

struct ModelOptions {
  int threads = 0;  // 0: what this process may use
  std::string isa;  // "scalar", "avx2", ...: for the whole process; empty: what it uses, at first the best
  std::function<void(double)> progress;  // fraction loaded
  // Keep the packed weights in a file below the cache folder, and map it when the same weights are loaded
  // again (docs/decisions/packed-cache.md says what that is worth).
  bool packed_cache = false;
  ChatTemplateOptions chat_template;

  Status validate() const;  // of what can be said without a file: threads, isa
};

// Control tokens around a gap that the model is to fill: what stands before it follows `before`, what stands
// behind it `behind`, and what it writes `middle`.
struct InfillTokens {
  Token before = kNoToken, behind = kNoToken, middle = kNoToken;
};

// Text to tokens and back. Thread-safe.
class Tokenizer {
 public:
  // Works on vocabulary-only files too.
  static Result<Tokenizer> load(const std::string& path);

  // `parse_special`: spellings of control tokens become those tokens; else they stay text. The model's
  // begin-of-text token is added where the file asks for it and `begin` is true.
  std::vector<Token> encode(std::string_view text, bool parse_special = false, bool begin = true) const;
  std::string decode(std::span<const Token> tokens, bool show_special = false) const;
  std::string piece(Token token) const;  // its bytes, or its name if it is a control token
  int size() const;
  bool ends_text(Token token) const;
  Token bos() const;  // kNoToken if there is none
  Token eos() const;
  InfillTokens infill() const;  // as the file names them; kNoToken where it does not

  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
  std::vector<ToolCall> tool_calls = {};     // of an assistant's message
  std::string tool_call_id = {}, name = {};  // of a tool's: which call it answers, and the tool's name
};

class ChatTemplate {
 public:
  // The conversation as the model was trained to see it, ready for the assistant's turn if `open_answer`.
  // What a user typed stays text: the spelling of a control token in it never becomes one. Errors: a role
  // that is none, arguments of a call that are no JSON object, and what the template itself refuses.
  Result<std::vector<Token>> tokens(std::span<const ChatMessage> messages, bool open_answer = true) const;
  Result<std::string> text(std::span<const ChatMessage> messages, bool open_answer = true) const;

  const std::string& program() const;              // its source
  bool mentions(std::string_view variable) const;  // "tools": does it look at them anywhere?

  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

class Model {
 public:
  // Errors name the file and what in it is wrong.
  static Result<Model> load(const std::string& path, const ModelOptions& options = {});

  const ModelInfo& info() const;
  const Tokenizer& tokenizer() const;
  // An error if the file has none and no other was given, or where it is wrong: line, column and what.
  Result<ChatTemplate> chat_template() const;
  // For one conversation: what is not empty in `options` replaces what load() was given; variables are added.
  Result<ChatTemplate> chat_template(const ChatTemplateOptions& options) const;

  struct Impl;
  explicit Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace coppice
