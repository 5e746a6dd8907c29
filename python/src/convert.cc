#include "convert.h"

#include <nanobind/stl/string.h>

namespace coppice::python {
namespace {

// Up to the last that is not zero: most answers guess no deeper than a few tokens.
nb::list counts(std::span<const std::uint64_t> numbers) {
  std::size_t n = numbers.size();
  while (n > 0 && numbers[n - 1] == 0) --n;
  nb::list out;
  for (const std::uint64_t number : numbers.first(n)) out.append(number);
  return out;
}

nb::list sources(const std::vector<SourceStats>& all) {
  nb::list out;
  for (const SourceStats& source : all) {
    nb::dict one;
    one["name"] = text(source.name);
    one["proposed"] = source.proposed;
    one["accepted"] = source.accepted;
    one["failures"] = source.failures;
    one["problem"] = text(source.problem);
    out.append(one);
  }
  return out;
}

nb::dict decisions(const Stats& stats) {
  nb::dict out;
  for (std::size_t rule = 0; rule < kRules; ++rule)
    if (stats.decisions[rule] != 0) out[text(to_string(static_cast<Rule>(rule)))] = stats.decisions[rule];
  return out;
}

nb::list top(const EmittedToken& token) {
  nb::list out;
  for (const auto& [id, logprob] : token.top) out.append(nb::make_tuple(id, logprob));
  return out;
}

}  // namespace

nb::str text(std::string_view bytes) {
  PyObject* made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

nb::dict stats(const Stats& s) {
  nb::dict out;
  const std::pair<const char*, std::uint64_t> numbers[] = {{"requests", s.requests},
                                                           {"prompt_tokens", s.prompt_tokens},
                                                           {"reused_tokens", s.reused_tokens},
                                                           {"tokens", s.tokens},
                                                           {"cycles", s.cycles},
                                                           {"target_passes", s.target_passes},
                                                           {"guesses", s.guesses},
                                                           {"accepted", s.accepted},
                                                           {"wanted", s.wanted},
                                                           {"plain_cycles", s.plain_cycles},
                                                           {"costly_cycles", s.costly_cycles},
                                                           {"probes", s.probes},
                                                           {"draft_passes", s.draft_passes},
                                                           {"target_bytes", s.target_bytes},
                                                           {"draft_bytes", s.draft_bytes}};
  for (const auto& [name, number] : numbers) out[name] = number;
  const std::pair<const char*, double> seconds[] = {
      {"prefill_seconds", s.prefill_seconds}, {"draft_seconds", s.draft_seconds},
      {"verify_seconds", s.verify_seconds},   {"sample_seconds", s.sample_seconds},
      {"policy_seconds", s.policy_seconds},   {"decode_seconds", s.decode_seconds}};
  for (const auto& [name, number] : seconds) out[name] = number;
  out["reached_at_depth"] = counts(s.reached_at_depth);
  out["accepted_at_depth"] = counts(s.accepted_at_depth);
  out["decisions"] = decisions(s);
  out["sources"] = sources(s.sources);
  return out;
}

nb::tuple ids_and_sources(const std::vector<EmittedToken>& tokens) {
  nb::list ids, sources;
  for (const EmittedToken& token : tokens) {
    ids.append(token.token);
    sources.append(token.source);
  }
  return nb::make_tuple(ids, sources);
}

nb::dict generation(const Generation& g, bool logprobs) {
  nb::dict out;
  out["text"] = text(g.text);
  const nb::tuple tokens = ids_and_sources(g.tokens);
  out["tokens"] = tokens[0];
  out["sources"] = tokens[1];
  out["stop_reason"] = text(to_string(g.stop));
  out["error"] = text(g.error);
  out["stats"] = stats(g.stats);
  out["logprobs"] = nb::none();
  out["top_logprobs"] = nb::none();
  if (logprobs) {
    nb::list drawn, best;
    for (const EmittedToken& token : g.tokens) {
      drawn.append(token.logprob);
      best.append(top(token));
    }
    out["logprobs"] = drawn;
    out["top_logprobs"] = best;
  }
  return out;
}

}  // namespace coppice::python
