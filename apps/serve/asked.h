// What all four APIs ask of the engine, once it is read: plain data, and the requests made of it.
#pragma once

#include <string>
#include <vector>

#include "json_fields.h"
#include "output_format.h"

namespace coppice::serve {

inline constexpr int kMostChoices = 64;                    // n
inline constexpr int kMostRequests = 256;                  // prompts times n, of one call
inline constexpr std::size_t kMostPromptTokens = 1 << 22;  // of all of them: 16 MB

struct Asked {
  Sampling sampling;    // stream and choice are each request's own
  bool seeded = false;  // somebody chose the seed
  int n = 1;            // answers to each prompt
  OutputFormat format;
  bool show_special = false;  // control tokens are part of the text, for they mark calls of tools
};

// Temperature, penalties, stop, seed, ... by OpenAI's names and vLLM's, with OpenAI's defaults: temperature
// 1, top_p 1. Reads no max_tokens, n or logprobs, which the routes name differently.
void read_sampling(Fields& fields, Asked& asked);

// A stop string or a list of them.
void read_stop(Fields& fields, std::string_view name, Sampling& sampling);

// The field `seed`, 64 bits with a sign or without; one nobody chose where it is absent.
void read_seed(Fields& fields, Asked& asked);

// The field `speculation`.
std::optional<SpeculationAsk> read_speculation(Fields& fields);

// One request for each prompt and choice, prompts first. Errors name the field, as far as the model decides:
// token ids outside its vocabulary, a grammar that is wrong.
ApiResult<std::vector<Request>> make_requests(const Asked& asked, const Ask& ask,
                                              std::vector<std::vector<Token>> prompts, const Model& model);

}  // namespace coppice::serve
