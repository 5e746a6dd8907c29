#include "asked.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>

namespace coppice::serve {
namespace {

constexpr std::size_t kMostStops = 16;
constexpr std::size_t kLongestStop = 1000;  // bytes; the stream compares each with what it holds back

void read_bias(Fields& fields, Sampling& sampling) {
  const Json* bias = fields.object("logit_bias");
  if (!bias) return;
  for (const auto& [key, value] : bias->items()) {
    Token token = kNoToken;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), token);
    if (read.ec != std::errc() || read.ptr != key.data() + key.size() || token < 0)
      return fields.error("logit_bias", fmt::format("keys must be token ids, not {}", show(key)));
    const double number = value.is_number() ? value.get<double>() : 1000;
    if (!(number >= -100 && number <= 100))
      return fields.error("logit_bias", fmt::format("of token {} must be a number from -100 to 100, not {}",
                                                    token, show(value)));
    sampling.logit_bias.emplace_back(token, static_cast<float>(number));
  }
}

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

void take_speculation(const SpeculationAsk& speculation, Request& request) {
  request.nodes = speculation.nodes;
  request.depth = speculation.depth;
  request.width = speculation.width;
  request.price = speculation.price;
  request.pass_price = speculation.pass_price;
  request.trace = speculation.trace;
}

// The field that a sentence of Sampling::validate() begins with.
std::string field_of(const std::string& sentence) { return sentence.substr(0, sentence.find_first_of(" :")); }

}  // namespace

void read_stop(Fields& fields, std::string_view name, Sampling& sampling) {
  sampling.stop = fields.texts(name, kMostStops);
  for (const std::string& stop : sampling.stop) {
    if (stop.empty()) fields.error(name, "an empty string would end every answer at once; leave it out");
    if (stop.size() > kLongestStop)
      fields.error(name,
                   fmt::format("a string has {} bytes; at most {} are possible", stop.size(), kLongestStop));
  }
}

void read_sampling(Fields& fields, Asked& asked) {
  constexpr int kMost = std::numeric_limits<int>::max();
  Sampling& sampling = asked.sampling;
  sampling.temperature = fields.number("temperature", 0, 100, 1);
  sampling.top_p = fields.share("top_p", 1);
  sampling.top_k = std::max(0, fields.maybe_integer("top_k", -1, kMost).value_or(0));  // vLLM: -1 is off
  sampling.min_p = fields.number("min_p", 0, 1, 0);
  sampling.typical_p = fields.share("typical_p", 1);
  sampling.repetition_penalty = fields.number("repetition_penalty", 0.01, 100, 1);
  sampling.presence_penalty = fields.number("presence_penalty", -2, 2, 0);
  sampling.frequency_penalty = fields.number("frequency_penalty", -2, 2, 0);
  sampling.penalty_window = fields.maybe_integer("penalty_window", -1, kMost).value_or(-1);
  sampling.ignore_eos = fields.boolean("ignore_eos", false);
  read_stop(fields, "stop", sampling);
  read_bias(fields, sampling);
  read_seed(fields, asked);
}

void read_seed(Fields& fields, Asked& asked) {
  const Json* seed = fields.find("seed");
  asked.seeded = seed != nullptr;
  if (!seed) {
    asked.sampling.seed = random_seed();
  } else if (seed->is_number_unsigned()) {
    asked.sampling.seed = seed->get<std::uint64_t>();
  } else if (const auto number = whole(*seed)) {
    asked.sampling.seed = static_cast<std::uint64_t>(*number);
  } else {
    fields.error("seed", fmt::format("must be a whole number from {} to {}, not {}",
                                     std::numeric_limits<std::int64_t>::min(),
                                     std::numeric_limits<std::uint64_t>::max(), show(*seed)));
  }
}

std::optional<SpeculationAsk> read_speculation(Fields& fields) {
  const Json* json = fields.object("speculation");
  if (!json) return std::nullopt;
  Fields own(*json, "speculation");
  SpeculationAsk ask;
  ask.drafters = own.maybe_text("drafters");
  ask.policy = own.maybe_text("policy");
  ask.nodes = own.maybe_integer("nodes", 0, 255);
  ask.depth = own.maybe_integer("depth", 1, 64);
  ask.width = own.maybe_integer("width", 1, 16);
  ask.price = own.maybe_number("price", 0, 1);
  ask.pass_price = own.maybe_number("pass_price", 0, 1000);
  ask.trace = own.boolean("trace", false);
  ask.stats = own.boolean("stats", true);
  if (const auto end = own.finish(); !end) fields.error(end.error());
  return ask;
}

ApiResult<std::vector<Request>> make_requests(const Asked& asked, const Ask& ask,
                                              std::vector<std::vector<Token>> prompts, const Model& model) {
  Request common;
  common.sampling = asked.sampling;
  common.show_special = asked.show_special;
  if (ask.speculation) take_speculation(*ask.speculation, common);
  if (const auto right = constrain(common.sampling, asked.format); !right)
    return tl::unexpected(right.error());
  if (const Status right = common.sampling.validate(model.info().vocab); !right)
    return tl::unexpected(invalid(field_of(right.error().message), right.error()));
  std::size_t tokens = 0;
  for (const auto& prompt : prompts) tokens += prompt.size() * static_cast<std::size_t>(asked.n);
  if (tokens > kMostPromptTokens)
    return tl::unexpected(
        invalid("prompt", fmt::format("the prompts of all answers have {} tokens together; at most {} "
                                      "are possible",
                                      tokens, kMostPromptTokens)));
  std::vector<Request> requests;
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    if (prompts[p].empty())
      return tl::unexpected(invalid("prompt", "prompt: it has no tokens; at least one is needed"));
    for (int choice = 0; choice < asked.n; ++choice) {
      Request& request = requests.emplace_back(common);
      request.prompt = prompts[p];
      request.sampling.choice = static_cast<std::uint32_t>(choice);
      // One prompt, one seed, one text; without a seed even equal prompts get different ones.
      request.sampling.stream = asked.seeded ? 0 : static_cast<std::uint32_t>(p);
    }
  }
  return requests;
}

}  // namespace coppice::serve
