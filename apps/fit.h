// coppice train mixer, ngram: what is fitted without a training library.
#pragma once

#include "command.h"

namespace coppice::app {

void add_mixer_training(CLI::App& train, const Choose& choose);
void add_ngram_training(CLI::App& train, const Choose& choose);

}  // namespace coppice::app
