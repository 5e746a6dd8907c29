// Requests and what comes of them: plain data.
#pragma once

#include <coppice/sampling.h>
#include <coppice/stats.h>
#include <coppice/token.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice {

enum class StopReason {
  none,
  end_of_text,
  stop_string,
  max_tokens,
  context_full,
  cancelled,
  timed_out,
  failed
};
std::string_view to_string(StopReason reason);

// Why a request failed on the way: by whom it can be mended.
enum class FailureKind {
  none,
  nothing_to_draw,  // its grammar, its bans or the logits leave no token: its sender, who may ask for less
  drafter,          // a drafter refused to begin: whoever wrote or chose it
  engine            // a pass or the cache: memory is out, or this is a bug of ours
};

inline constexpr int kFromTarget = -1;

struct EmittedToken {
  Token token = kNoToken;
  int source = kFromTarget;  // first drafter of the mix that guessed it; kFromTarget: nobody did
  float logprob = 0;         // if asked for
  std::vector<std::pair<Token, float>> top;  // the n best, if asked for
};

// The tree of one pass, for people to look at.
struct TreeTrace {
  struct Node {
    Token token = kNoToken;
    int parent = -1;
    float value = 0;
    std::uint32_t sources = 0;  // bit d: drafter d of the mix
    bool taken = false;
  };
  std::vector<Node> nodes;                         // node 0 is the root
  Token drawn = kNoToken;                          // what the target drew at the end of the path taken
  std::uint64_t draft_passes = 0, draft_rows = 0;  // of draft models before this pass, for all requests in it
  int wanted = 0;       // guesses that were made; those in nodes were worth their rows
  bool costly = false;  // draft models were asked
  bool probe = false;   // the policy tried what it does not think best
};

// What a pass brought for one request. Views live for the call.
struct Event {
  std::uint64_t request = 0;
  std::span<const EmittedToken> tokens;
  std::string_view text;            // complete characters only, nothing that might become a stop string
  const TreeTrace* tree = nullptr;  // if asked for
  double prefill = 1.0;             // fraction of the prompt done; tokens are empty while it is under 1
  // Of the policy `adaptive`, since the last event. The last event of a request may bring nothing else.
  std::span<const Decision> decisions;
};

struct Request {
  std::vector<Token> prompt;  // at least one token
  Sampling sampling;
  std::optional<int> nodes;  // overrides of the engine's speculation, within its limits
  std::optional<int> depth;
  std::optional<int> width;
  std::optional<float> price;
  std::optional<float> pass_price;
  // The answer's first tokens, instead of what would be drawn: to measure ways of guessing on a text that is
  // given (teacher forcing). With `acceptance = rejection` they are refused.
  std::vector<Token> forced;
  double timeout_seconds = 0;  // from submit(); what has come until then is the answer. 0: none
  bool trace = false;          // Event::tree
  bool show_special = false;   // spell control tokens out in the text
  // Called inside step() or generate(); false cancels. It may submit and cancel, but not step or generate.
  std::function<bool(const Event&)> on_event;
};

struct Generation {
  std::string text;                  // whole answer, without the stop string or the end-of-text token
  std::vector<EmittedToken> tokens;  // every token drawn, the end-of-text token included
  StopReason stop = StopReason::none;
  std::string error;  // with StopReason::failed: the sentence, and the kind
  FailureKind failure = FailureKind::none;
  Stats stats;
};

}  // namespace coppice
