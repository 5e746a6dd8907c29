// What guesses, and how much. None of it changes the text (unless acceptance = rejection).
#pragma once

#include <coppice/error.h>

#include <string>

namespace coppice {

struct Speculation {
  // A drafter expression (docs/drafters.md): "none", "lookup",
  // "stage(draft.gguf, ngram(code.ngram) | lookup) | lookup", ...
  std::string drafters = "lookup";
  std::string prior;    // a mixer prior file made for this mix; empty: the built-in one
  int nodes = 16;       // guesses a pass, at most; 0: plain decoding. [0, 255]
  int depth = 16;       // tokens a guess may reach ahead. [1, 64]
  int width = 16;       // guesses at one place; 1: a chain and no tree. [1, 16]
  float price = 0.01f;  // the least chance worth a row. [0, 1]
  // The least gain, in expected tokens, that one more pass of a draft model or head is worth; what is left
  // is guessed by the cheap drafters. 0: a pass for every level. For "fixed"; "auto" knows what it costs.
  float pass_price = 0.4f;
  // How much to draft: "auto": what pays, within the limits above; "fixed": always all of it;
  // "adaptive-paper", "adaptive-fitted(batch=8)", ...: by the rules of a paper (docs/policies.md).
  std::string policy = "auto";

  Status validate() const;  // names the first field that is out of range
};

}  // namespace coppice
