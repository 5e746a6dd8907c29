// The ranges of every sampling option, checked once, before anything else sees them.
#include <coppice/sampling.h>
#include <fmt/format.h>

#include <cmath>

namespace coppice {
namespace {

// The counter word that holds the stream keeps its top byte for the purpose (numerics 2, 5).
constexpr std::uint32_t kStreams = 1u << 24;
constexpr int kMostLogprobs = 1000;

// `ok` is false for NaN as well, because a comparison with NaN is.
template <class T>
Status require(bool ok, const char* field, const T& value, const char* right) {
  if (ok) return {};
  return fail(fmt::format("{} = {}: it must be {}", field, value, right));
}

Status check_token(const char* field, Token token, int vocab) {
  if (token >= 0 && token < vocab) return {};
  return fail(
      fmt::format("{}: token {} is not in the vocabulary; ids go from 0 to {}", field, token, vocab - 1));
}

Status check_lists(const Sampling& s, int vocab) {
  for (const auto& [token, bias] : s.logit_bias) {
    if (Status status = check_token("logit_bias", token, vocab); !status) return status;
    if (!std::isfinite(bias))
      return fail(fmt::format("logit_bias of token {} = {}: it must be finite; use banned to forbid a token",
                              token, bias));
  }
  for (const Token token : s.banned)
    if (Status status = check_token("banned", token, vocab); !status) return status;
  for (const std::string& stop : s.stop)
    if (stop.empty()) return fail("stop: an empty string would end every answer at once; leave it out");
  return {};
}

}  // namespace

Status Sampling::validate(int vocab) const {
  const Status checks[] = {
      require(temperature >= 0 && temperature <= 100, "temperature", temperature, "between 0 and 100"),
      require(top_k >= 0, "top_k", top_k, "0 (off) or more"),
      require(top_p > 0 && top_p <= 1, "top_p", top_p, "above 0 and at most 1 (off)"),
      require(min_p >= 0 && min_p <= 1, "min_p", min_p, "between 0 (off) and 1"),
      require(typical_p > 0 && typical_p <= 1, "typical_p", typical_p, "above 0 and at most 1 (off)"),
      require(repetition_penalty > 0 && std::isfinite(repetition_penalty), "repetition_penalty",
              repetition_penalty, "above 0 and finite; 1 is off"),
      require(std::isfinite(presence_penalty), "presence_penalty", presence_penalty, "finite; 0 is off"),
      require(std::isfinite(frequency_penalty), "frequency_penalty", frequency_penalty, "finite; 0 is off"),
      require(penalty_window >= -1, "penalty_window", penalty_window, "a number of tokens, or -1 for all"),
      check_lists(*this, vocab),
      require(stream < kStreams, "stream", stream, "below 16777216 (24 bits)"),
      require(max_tokens > 0, "max_tokens", max_tokens, "at least 1"),
      require(logprobs >= -1 && logprobs <= kMostLogprobs, "logprobs", logprobs,
              "between 0 and 1000, or -1 for off"),
  };
  for (const Status& status : checks)
    if (!status) return status;
  if (grammar && ignore_eos)
    return fail(
        "ignore_eos = true: with a grammar the answer ends where the grammar does; leave one of them out");
  return {};
}

}  // namespace coppice
