#include "options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "files.h"
#include "terminal.h"

namespace coppice::app {

namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostContext = 1 << 24;  // tokens; memory ends long before
constexpr int kMostChunk = 4096;

}  // namespace

std::string not_negative(const std::string& text) {
  return text.rfind('-', 0) == 0 ? "Value " + text + " is negative; 0 or more is wanted" : std::string();
}

void ModelFlags::add(CLI::App& app) {
  app.add_option("-m,--model", path,
                 "GGUF file, or the name or part of the name of one that `coppice models` lists (default: "
                 "$COPPICE_MODEL, else the first of that list)");
  add_machine(app);
}

void ModelFlags::add_machine(CLI::App& app) {
  app.add_option("-t,--threads", threads, "threads; 0: all that this process may use")
      ->check(CLI::Range(0, kMostThreads))
      ->capture_default_str();
  app.add_option("--isa", isa,
                 "instruction set, of those that `coppice info` shows (default: the best there is)");
  app.add_flag("--packed-cache", packed_cache,
               "keep the packed weights in a file below the cache folder, and map it the next time");
}

void ModelFlags::add_chat(CLI::App& app, bool tools) {
  const char* group = "Chat template";
  app.add_option("--chat-template-file", chat_template_file,
                 "a Jinja template to use instead of the one in the model's file")
      ->group(group);
  app.add_option("--chat-template-kwargs", chat_variables,
                 "variables for the template, a JSON object: {\"enable_thinking\": false}")
      ->group(group);
  if (!tools) return;
  app.add_option("--tools", tools_file,
                 "a file with the tools that the template shows the model, a JSON array")
      ->group(group);
}

Result<ChatTemplateOptions> ModelFlags::chat_template() const {
  ChatTemplateOptions options;
  if (!chat_template_file.empty()) {
    auto text = read_text(chat_template_file);
    if (!text) return tl::unexpected(text.error());
    if (text->empty())
      return fail(fmt::format("{} is empty; a chat template was wanted", chat_template_file));
    options.program = std::move(*text);
    options.name = chat_template_file;
  }
  if (!tools_file.empty()) {
    auto text = read_text(tools_file);
    if (!text) return tl::unexpected(text.error());
    if (!nlohmann::json::parse(*text, nullptr, false).is_array())
      return fail(fmt::format("--tools {}: a JSON array of tools is wanted", tools_file));
    options.tools = std::move(*text);
  }
  if (!chat_variables.empty() && !nlohmann::json::parse(chat_variables, nullptr, false).is_object())
    return fail("--chat-template-kwargs: a JSON object is wanted, as in {\"enable_thinking\": false}");
  options.variables = chat_variables;
  return options;
}

Result<std::string> ModelFlags::resolve() const {
  if (!path.empty()) return find_model_file(path);
  if (const char* named = std::getenv("COPPICE_MODEL"); named != nullptr && *named != 0)
    return find_model_file(named);
  for (const FoundModel& found : find_models()) {
    if (found.architecture.empty()) continue;
    note("using {}\n", found.path);
    return found.path;
  }
  return fail("no model given: name a GGUF file with -m (coppice models lists those on this machine)");
}

Error name_the_option(const Error& error) {
  std::string text = error.message;
  constexpr std::string_view kOwner = "speculation.";
  if (text.rfind(kOwner, 0) == 0) text.erase(0, kOwner.size());
  const std::size_t end = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  std::string field = text.substr(0, end);
  if (field == "banned") field = "ban";
  std::replace(field.begin(), field.end(), '_', '-');
  std::string rest = end == std::string::npos ? "" : text.substr(end);
  constexpr std::string_view kBanned = "use banned to";
  if (const auto at = rest.find(kBanned); at != std::string::npos)
    rest.replace(at, kBanned.size(), "use --ban to");
  return Error{fmt::format("--{}{}", field, rest)};
}

Result<ModelOptions> ModelFlags::options() const {
  ModelOptions options;
  options.threads = threads;
  options.isa = isa;
  options.packed_cache = packed_cache;
  auto chat = chat_template();
  if (!chat) return tl::unexpected(chat.error());
  options.chat_template = std::move(*chat);
  if (Status right = options.validate(); !right) return tl::unexpected(right.error());
  return options;
}

Result<Model> ModelFlags::load() const {
  auto file = resolve();
  if (!file) return tl::unexpected(file.error());
  auto options = this->options();
  if (!options) return tl::unexpected(options.error());
  options->progress = [](double fraction) { show_progress("loading", fraction); };
  auto model = Model::load(*file, *options);
  clear_progress();
  if (model && !model->info().packed_cache_problem.empty())
    note("packed cache: {}\n", model->info().packed_cache_problem);
  return model;
}

void GrammarFlags::add(CLI::App& app) {
  const char* group = "Grammar (what the answer must be a text of: docs/grammar.md)";
  const auto not_empty = [](const std::string& text) {
    return text.empty() ? std::string("it is empty; leave it out where the answer may be any text") : "";
  };
  app.add_option("--json-schema", schema,
                 "JSON that is valid under this schema: a file, or the schema itself")
      ->group(group)
      ->check(not_empty);
  app.add_option("--grammar", file, "a text of the grammar in this file, GBNF style")
      ->group(group)
      ->check(not_empty);
  app.add_flag("--json-object", json_object, "any JSON object")->group(group);
}

Result<std::optional<Grammar>> GrammarFlags::resolve() const {
  if ((schema.empty() ? 0 : 1) + (file.empty() ? 0 : 1) + (json_object ? 1 : 0) > 1)
    return fail("say one of --json-schema, --grammar and --json-object");
  if (json_object) return std::optional(Grammar::json_object());
  if (schema.empty() && file.empty()) return std::optional<Grammar>();
  const char* option = schema.empty() ? "--grammar" : "--json-schema";
  std::string text = schema, name = "the text given";
  const std::size_t first = schema.find_first_not_of(" \t\r\n");
  if (schema.empty() || (first != std::string::npos && schema[first] != '{')) {
    name = schema.empty() ? file : schema;
    auto read = read_text(name);
    if (!read) return fail(fmt::format("{}: {}", option, read.error().message));
    text = std::move(*read);
  }
  auto made = schema.empty() ? Grammar::parse(text) : Grammar::json_schema(text);
  if (!made) return fail(fmt::format("{}: {}: {}", option, name, made.error().message));
  return std::optional(std::move(*made));
}

void SamplingFlags::add(CLI::App& app) {
  grammar.add(app);
  const char* group = "Sampling";
  auto option = [&](const char* name, auto& value, const char* help) {
    app.add_option(name, value, help)->group(group)->capture_default_str();
  };
  option("--temperature,--temp", sampling.temperature, "0: greedy");
  option("--top-k", sampling.top_k, "only the k most likely; 0: off");
  option("--top-p", sampling.top_p, "only the most likely up to this mass; 1: off");
  option("--min-p", sampling.min_p, "only those at least this share of the most likely; 0: off");
  option("--typical-p", sampling.typical_p, "locally typical sampling; 1: off");
  option("--repetition-penalty", sampling.repetition_penalty, "1: off");
  option("--presence-penalty", sampling.presence_penalty, "0: off");
  option("--frequency-penalty", sampling.frequency_penalty, "0: off");
  option("--penalty-window", sampling.penalty_window, "last tokens that the penalties see; -1: all");
  app.add_option("--logit-bias", bias, "TOKEN=VALUE, repeatable: added to the logit")->group(group);
  app.add_option("--ban", sampling.banned, "token ids that are never drawn")->group(group)->delimiter(',');
  app.add_flag("--ignore-eos", sampling.ignore_eos, "never draw an end-of-text token")->group(group);
  app.add_option("--stop", sampling.stop, "the answer ends before this text; repeatable")->group(group);
  app.add_option("--seed", sampling.seed, "the same seed gives the same text")
      ->group(group)
      ->check(not_negative)
      ->capture_default_str();
  app.add_option("--stream", sampling.stream, "tells requests of one seed apart")
      ->group(group)
      ->check(not_negative)
      ->capture_default_str();
  option("-n,--max-tokens", sampling.max_tokens, "of the answer");
  option("--logprobs", sampling.logprobs, "log-probabilities of the drawn and the n best tokens; -1: off");
  app.add_option("--acceptance", acceptance,
                 "keyed: the same text as without speculation; rejection: the classic rule, the same "
                 "distribution but not the same text, its guesses drawn from the draft model")
      ->group(group)
      ->check(one_of("keyed|rejection"))
      ->capture_default_str();
}

Result<Sampling> SamplingFlags::resolve(int vocab) const {
  Sampling out = sampling;
  for (const std::string& entry : bias) {
    const auto equals = entry.find('=');
    char* end = nullptr;
    const std::string token = entry.substr(0, equals),
                      value = equals == std::string::npos ? "" : entry.substr(equals + 1);
    const long id = std::strtol(token.c_str(), &end, 10);
    const bool number = !token.empty() && *end == 0;
    const float amount = std::strtof(value.c_str(), &end);
    if (!number || id != static_cast<Token>(id) || value.empty() || *end != 0) {
      return fail(fmt::format("--logit-bias {}: TOKEN=VALUE is wanted, two numbers", entry));
    }
    out.logit_bias.emplace_back(static_cast<Token>(id), amount);
  }
  if (acceptance == "rejection") {
    out.acceptance = Acceptance::rejection;
  } else if (acceptance != "keyed") {
    return fail(fmt::format("--acceptance {}: there is keyed and rejection", acceptance));
  }
  auto constrained = grammar.resolve();
  if (!constrained) return tl::unexpected(constrained.error());
  out.grammar = std::move(*constrained);
  Sampling checked = out;
  if (vocab == kAnyVocabulary) {  // token ids are for later
    checked.logit_bias.clear();
    checked.banned.clear();
  }
  if (Status valid = checked.validate(vocab); !valid) return tl::unexpected(name_the_option(valid.error()));
  return out;
}

void SpeculationFlags::add(CLI::App& app, bool drafters) {
  const char* group = "Speculation (never changes the text)";
  if (drafters) {
    std::string help = "drafter expression, \"none\" or a mix of:";
    for (const DrafterHelp& row : drafter_help()) help += fmt::format("\n{}: {}", row.usage, row.summary);
    app.add_option("-d,--drafters", speculation.drafters, help)->group(group)->capture_default_str();
    app.add_flag("--plain", plain, "no speculation")->group(group);
  }
  app.add_option("--prior", speculation.prior, "mixer prior made for this mix")->group(group);
  app.add_option("--nodes", speculation.nodes, "guesses a pass, at most")
      ->group(group)
      ->capture_default_str();
  app.add_option("--depth", speculation.depth, "how far ahead a guess may reach")
      ->group(group)
      ->capture_default_str();
  app.add_option("--width", speculation.width, "guesses at one place; 1: a chain and no tree")
      ->group(group)
      ->capture_default_str();
  app.add_option("--price", speculation.price, "the least chance worth a row")
      ->group(group)
      ->capture_default_str();
  app.add_option(
         "--pass-price", speculation.pass_price,
         "with --policy fixed: the least gain in tokens worth another pass of a draft model or head; 0: "
         "any")
      ->group(group)
      ->capture_default_str();
  app.add_option("--policy", speculation.policy,
                 "how much to draft, within these limits: auto (what pays), fixed (always all of it), "
                 "adaptive-paper or adaptive-fitted (rules of confidence, with options as in "
                 "\"adaptive-paper(batch=8)\": docs/policies.md)")
      ->group(group)
      ->check(one_of("auto|fixed|adaptive-paper|adaptive-fitted"))
      ->capture_default_str();
}

Result<Speculation> SpeculationFlags::resolve() const {
  Speculation out = speculation;
  if (plain) out.drafters = "none";
  if (Status valid = out.validate(); !valid) return tl::unexpected(name_the_option(valid.error()));
  if (Status right = check_drafters(out.drafters); !right) return tl::unexpected(right.error());
  return out;
}

void EngineFlags::add(CLI::App& app) {
  app.add_option("-c,--context", context, "tokens of prompt and answer; 0: the model's, up to 4096")
      ->check(CLI::Range(0, kMostContext))
      ->capture_default_str();
  app.add_option("--cache", cache, "KV cache")->check(one_of("f32|f16|q8_0"))->capture_default_str();
  app.add_option("--chunk", chunk, "prompt tokens a pass, at most")
      ->check(CLI::Range(1, kMostChunk))
      ->capture_default_str();
}

Result<EngineOptions> EngineFlags::resolve(const Speculation& speculation) const {
  EngineOptions out;
  out.context = context;
  out.chunk = chunk;
  out.speculation = speculation;
  if (cache == "f32") {
    out.cache = KvType::f32;
  } else if (cache == "f16") {
    out.cache = KvType::f16;
  } else if (cache == "q8_0") {
    out.cache = KvType::q8_0;
  } else {
    return fail(fmt::format("--cache {}: there is f32, f16 and q8_0", cache));
  }
  return out;
}

CLI::Validator one_of(const std::string& words) {
  return {[](std::string&) { return std::string(); }, words};
}

CLI::Validator at_least(int least) {
  return {[least](std::string& text) {
            const bool enough = std::strtod(text.c_str(), nullptr) >= least;
            return enough ? std::string() : fmt::format("{} is too few; at least {} is wanted", text, least);
          },
          ""};
}

std::string summary(const Stats& stats) {
  std::string out = fmt::format(
      "{} tokens, {:.1f} tok/s, {} passes, {:.2f} tokens a pass, mean accepted {:.2f}", stats.tokens,
      stats.tokens_per_second(), stats.cycles, stats.tokens_per_pass(), stats.mean_accepted());
  std::string sources;
  for (const SourceStats& source : stats.sources) {
    if (source.proposed == 0) continue;
    sources += fmt::format(
        "{}{} {:.0f}% of {}", sources.empty() ? "" : ", ", source.name,
        100.0 * static_cast<double>(source.accepted) / static_cast<double>(source.proposed), source.proposed);
  }
  if (!sources.empty()) out += " (" + sources + ")";
  if (stats.wanted > stats.guesses && stats.cycles > 0) {
    const auto cycles = static_cast<double>(stats.cycles);
    out +=
        fmt::format(", {:.1f} of {:.1f} guesses a pass were worth a row",
                    static_cast<double>(stats.guesses) / cycles, static_cast<double>(stats.wanted) / cycles);
  }
  return out;
}

std::string stats_json(const Stats& stats, int indent) {
  nlohmann::ordered_json sources = nlohmann::ordered_json::array();
  for (const SourceStats& s : stats.sources) {
    sources.push_back({{"name", s.name}, {"proposed", s.proposed}, {"accepted", s.accepted}});
  }
  std::size_t depths = Stats::kDepths;
  while (depths > 0 && stats.reached_at_depth[depths - 1] == 0) --depths;
  const auto upto = [&](const auto& values) {
    return std::vector<std::uint64_t>(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(depths));
  };
  nlohmann::ordered_json decisions = nlohmann::ordered_json::object();
  for (std::size_t r = 0; r < kRules; ++r)
    if (stats.decisions[r] > 0) decisions[std::string(to_string(static_cast<Rule>(r)))] = stats.decisions[r];
  nlohmann::ordered_json out = {{"prompt_tokens", stats.prompt_tokens},
                                {"reused_tokens", stats.reused_tokens},
                                {"tokens", stats.tokens},
                                {"cycles", stats.cycles},
                                {"tokens_per_pass", stats.tokens_per_pass()},
                                {"mean_accepted", stats.mean_accepted()},
                                {"guesses", stats.guesses},
                                {"accepted", stats.accepted},
                                {"target_passes", stats.target_passes},
                                {"wanted", stats.wanted},
                                {"plain_cycles", stats.plain_cycles},
                                {"costly_cycles", stats.costly_cycles},
                                {"probes", stats.probes},
                                {"draft_passes", stats.draft_passes},
                                {"target_bytes", stats.target_bytes},
                                {"draft_bytes", stats.draft_bytes},
                                {"prefill_seconds", stats.prefill_seconds},
                                {"decode_seconds", stats.decode_seconds},
                                {"draft_seconds", stats.draft_seconds},
                                {"verify_seconds", stats.verify_seconds},
                                {"sample_seconds", stats.sample_seconds},
                                {"policy_seconds", stats.policy_seconds},
                                {"tokens_per_second", stats.tokens_per_second()},
                                {"reached_at_depth", upto(stats.reached_at_depth)},
                                {"accepted_at_depth", upto(stats.accepted_at_depth)},
                                {"decisions", decisions},
                                {"sources", sources}};
  return out.dump(indent);
}

}  // namespace coppice::app
