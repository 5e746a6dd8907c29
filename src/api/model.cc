#include <coppice/model.h>
#include <fmt/core.h>

#include <future>
#include <nlohmann/json.hpp>

#include "api/impl.h"
#include "base/check.h"
#include "base/os.h"
#include "kernels/kernels.h"
#include "model/packed_cache.h"

namespace coppice {
namespace {

constexpr int kMostThreads = 1024;

ModelInfo describe(const core::gguf::File& file, const core::Model& model) {
  const core::ModelConfig& config = model.config();
  ModelInfo info;
  info.path = file.path();
  info.name = config.name;
  info.architecture = config.architecture;
  info.vocab = config.vocab;
  info.hidden = config.hidden;
  info.layers = config.layers;
  info.heads = config.heads;
  info.kv_heads = config.kv_heads;
  info.head_dim = config.head_dim;
  info.context_length = config.context_length;
  for (const core::gguf::Tensor& tensor : file.tensors())
    info.parameters += static_cast<std::uint64_t>(tensor.values());
  info.file_bytes = file.bytes();
  info.weight_bytes = model.weight_bytes();
  return info;
}

Status check_isa(const std::string& isa) {
  std::string choices;
  for (const core::Kernels* table : core::all_kernels()) {
    if (!core::usable(*table)) continue;
    if (isa.empty() || isa == table->name) return {};
    choices += fmt::format("{}{}", choices.empty() ? "" : ", ", table->name);
  }
  return fail(
      fmt::format("instruction set \"{}\" is not on this machine or not known; there is {}", isa, choices));
}

}  // namespace

Status choose_isa(const std::string& isa) {
  COPPICE_TRY_STATUS(check_isa(isa));
  if (!isa.empty()) core::force_kernels(isa);
  return {};
}

Status ModelOptions::validate() const {
  if (threads < 0 || threads > kMostThreads)
    return fail(fmt::format("threads = {} is out of range; 0 (all there are) to {} are possible", threads,
                            kMostThreads));
  return check_isa(isa);
}

Result<Tokenizer> make_tokenizer(const core::gguf::File& file) {
  COPPICE_TRY(auto vocabulary, core::Vocabulary::read(file));
  core::add_end_of_turn(vocabulary);
  auto tokenizer = core::Tokenizer::make(std::move(vocabulary));
  if (!tokenizer) return fail(fmt::format("{}: {}", file.path(), tokenizer.error().message));
  return Tokenizer(std::make_shared<Tokenizer::Impl>(Tokenizer::Impl{std::move(*tokenizer)}));
}

Result<Tokenizer> Tokenizer::load(const std::string& path) {
  COPPICE_TRY(auto file, core::gguf::File::open(path));
  return make_tokenizer(*file);
}

std::vector<Token> Tokenizer::encode(std::string_view text, bool parse_special, bool begin) const {
  const core::Vocabulary& vocabulary = impl_->tokenizer->vocabulary();
  std::vector<Token> tokens = impl_->tokenizer->encode(text, parse_special);
  if (begin && vocabulary.add_bos && vocabulary.bos != kNoToken)
    tokens.insert(tokens.begin(), vocabulary.bos);
  return tokens;
}

std::string Tokenizer::decode(std::span<const Token> tokens, bool show_special) const {
  return impl_->tokenizer->decode(tokens, show_special);
}

std::string Tokenizer::piece(Token token) const { return std::string(impl_->tokenizer->bytes(token, true)); }
int Tokenizer::size() const { return impl_->tokenizer->size(); }
bool Tokenizer::ends_text(Token token) const { return impl_->tokenizer->ends_text(token); }
Token Tokenizer::bos() const { return impl_->tokenizer->vocabulary().bos; }
Token Tokenizer::eos() const { return impl_->tokenizer->vocabulary().eos; }
InfillTokens Tokenizer::infill() const {
  const core::InfillTokens& tokens = impl_->tokenizer->vocabulary().infill;
  return {tokens.before, tokens.behind, tokens.middle};
}

namespace {
using Json = nlohmann::ordered_json;

Result<Json> read_json(std::string_view what, const std::string& text, Json::value_t wanted) {
  if (text.empty()) return wanted == Json::value_t::object ? Json::object() : Json();
  Json json = Json::parse(text, nullptr, false);
  if (json.type() == wanted) return json;
  return fail(fmt::format("{} should be a JSON {} and {}", what,
                          wanted == Json::value_t::object ? "object" : "array",
                          json.is_discarded() ? "is no JSON" : fmt::format("is a {}", json.type_name())));
}

Result<core::ChatOptions> read_options(const ChatTemplateOptions& options) {
  core::ChatOptions out;
  out.program = options.program;
  out.name = options.name.empty() ? "the chat template" : options.name;
  COPPICE_TRY(out.tools, read_json("chat_template.tools", options.tools, Json::value_t::array));
  COPPICE_TRY(out.documents, read_json("chat_template.documents", options.documents, Json::value_t::array));
  COPPICE_TRY(out.variables, read_json("chat_template.variables", options.variables, Json::value_t::object));
  return out;
}

// As transformers hands messages to a template: a call's arguments are an object, and a message that only
// calls tools has no content.
Result<Json> message_json(const ChatMessage& message) {
  Json out = {{"role", message.role}, {"content", message.content}};
  if (!message.name.empty()) out["name"] = message.name;
  if (!message.tool_call_id.empty()) out["tool_call_id"] = message.tool_call_id;
  if (message.tool_calls.empty()) return out;
  if (message.content.empty()) out["content"] = nullptr;
  Json& calls = out["tool_calls"] = Json::array();
  for (const ToolCall& call : message.tool_calls) {
    COPPICE_TRY(Json arguments, read_json(fmt::format("the arguments of a call of {}", call.name),
                                          call.arguments, Json::value_t::object));
    calls.push_back({{"id", call.id},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", std::move(arguments)}}}});
  }
  return out;
}

Result<Json> messages_json(std::span<const ChatMessage> messages) {
  Json out = Json::array();
  for (const ChatMessage& message : messages) {
    COPPICE_TRY(out.emplace_back(), message_json(message));
  }
  return out;
}
}  // namespace

Result<std::vector<Token>> ChatTemplate::tokens(std::span<const ChatMessage> messages,
                                                bool open_answer) const {
  COPPICE_TRY(const Json json, messages_json(messages));
  return impl_->chat.tokens(*impl_->tokenizer, json, open_answer);
}

Result<std::string> ChatTemplate::text(std::span<const ChatMessage> messages, bool open_answer) const {
  COPPICE_TRY(const Json json, messages_json(messages));
  return impl_->chat.text(json, open_answer);
}

const std::string& ChatTemplate::program() const { return impl_->chat.source(); }
bool ChatTemplate::mentions(std::string_view variable) const { return impl_->chat.mentions(variable); }

Result<Model> Model::load(const std::string& path, const ModelOptions& options) {
  COPPICE_TRY_STATUS(options.validate());
  COPPICE_TRY_STATUS(choose_isa(options.isa));
  LoadTimes times;
  const double start = core::seconds();
  const auto since = [](double then) { return core::seconds() - then; };
  auto impl = std::make_shared<Impl>();
  COPPICE_TRY(impl->chat, read_options(options.chat_template));
  COPPICE_TRY(impl->file, core::gguf::File::open(path));
  times.open = since(start);
  impl->pool =
      std::make_shared<core::ThreadPool>(options.threads > 0 ? options.threads : core::usable_cores());
  // Making the tokenizer is one thread's work, as long as packing a small model with two: they go side by
  // side.
  auto tokenizer =
      std::async(impl->pool->size() > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred,
                 [&file = *impl->file, &times, since] {
                   const double begin = core::seconds();
                   auto made = make_tokenizer(file);
                   times.tokenizer = since(begin);
                   return made;
                 });
  const double weights_start = core::seconds();
  core::PackedCache cache;
  cache.folder = core::cache_directory() + "/packed";
  auto model =
      core::Model::load(impl->file, *impl->pool, options.progress, options.packed_cache ? &cache : nullptr);
  times.weights = since(weights_start);
  auto read = tokenizer.get();
  COPPICE_TRY(impl->model, std::move(model));  // what kind of file it is comes first
  COPPICE_TRY(impl->tokenizer, std::move(read));
  impl->grammar_tokens = std::make_shared<core::GrammarTokens>(impl->tokenizer.impl().tokenizer);
  impl->file->release();
  if (impl->model->config().vocab != impl->tokenizer.size()) {
    return fail(fmt::format("{}: the model has {} tokens and its tokenizer {}; they must be equal", path,
                            impl->model->config().vocab, impl->tokenizer.size()));
  }
  impl->info = describe(*impl->file, *impl->model);
  times.total = since(start);
  impl->info.load = times;
  impl->info.from_packed_cache = cache.used;
  impl->info.packed_cache = cache.path;
  impl->info.packed_cache_problem = cache.problem;
  return Model(std::move(impl));
}

const ModelInfo& Model::info() const { return impl_->info; }
const Tokenizer& Model::tokenizer() const { return impl_->tokenizer; }

Result<core::ChatTemplate> Model::Impl::chat_template() const {
  return core::ChatTemplate::make(tokenizer.impl().tokenizer->vocabulary(), chat);
}

Result<ChatTemplate> Model::chat_template() const { return chat_template(ChatTemplateOptions{}); }

Result<ChatTemplate> Model::chat_template(const ChatTemplateOptions& options) const {
  const auto& tokenizer = impl_->tokenizer.impl().tokenizer;
  COPPICE_TRY(const core::ChatOptions own, read_options(options));
  core::ChatOptions merged = impl_->chat;
  if (!own.program.empty()) {
    merged.program = own.program;
    merged.name = own.name;
  }
  if (!own.tools.is_null()) merged.tools = own.tools;
  if (!own.documents.is_null()) merged.documents = own.documents;
  merged.variables.update(own.variables);
  auto chat = core::ChatTemplate::make(tokenizer->vocabulary(), merged);
  if (!chat && !merged.program.empty()) return tl::unexpected(std::move(chat).error());
  if (!chat) return fail(fmt::format("{}: {}", impl_->info.path, chat.error().message));
  return ChatTemplate(std::make_shared<ChatTemplate::Impl>(ChatTemplate::Impl{tokenizer, std::move(*chat)}));
}

}  // namespace coppice
