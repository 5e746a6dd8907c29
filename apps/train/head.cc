#include <memory>

#include "flags.h"

namespace coppice::app {

void add_train_head(CLI::App& app, const ChooseTraining& choose, const std::string& command) {
  const auto training = std::make_shared<HeadTraining>();
  CLI::App* sub =
      app.add_subcommand("head", "a head that reads the target's states (EAGLE-3, arXiv:2503.01840)");
  add_files(*sub, *training);
  HeadTraining& head = *training;
  head.command = command;
  sub->add_option("--vocab", head.vocabulary, "how many tokens it can guess, the most used ones")
      ->capture_default_str();
  sub->add_option("--depth", head.depth, "guesses in a chain that it is trained for")->capture_default_str();
  sub->add_option("--narrowing", head.narrowing, "share of a step's texts that goes on to the next depth")
      ->capture_default_str();
  sub->add_option("--layer", head.layer, "of the target, whose weights it begins with; -1: the last")
      ->capture_default_str();
  sub->add_option("--negatives", head.negatives, "tokens drawn beside those the target names; 0: all")
      ->capture_default_str();
  sub->add_option("--objective", head.objective, "kl, tv (total variation) or lk (its logarithm)")
      ->capture_default_str();
  sub->add_option("--temperature", head.temperature, "of the target's distribution; below 1 is sharper")
      ->capture_default_str();
  sub->add_flag("--train-output,!--freeze-output", head.train_output,
                "the output's rows learn, too (default)");
  sub->add_option("--format", head.format, "of the matrices in the file")->capture_default_str();
  add_loop(*sub, head.loop);
  choose_with(*sub, training, choose, train_head);
}

}  // namespace coppice::app
