// coppice train mixer, ngram (fit.cc), gate, tau (fit_policy.cc): what is fitted without a training library.
#pragma once

#include "command.h"

namespace coppice::app {

void add_mixer_training(CLI::App& train, const Choose& choose);
void add_ngram_training(CLI::App& train, const Choose& choose);
void add_gate_training(CLI::App& train, const Choose& choose);
void add_tau_training(CLI::App& train, const Choose& choose);

}  // namespace coppice::app
