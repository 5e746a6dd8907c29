#include "flags.h"

namespace coppice::app {

void add_loop(CLI::App& app, TrainLoop& loop) {
  app.add_option("--minutes", loop.minutes,
                 "budget by the clock; the learning rate falls to nothing at its end");
  app.add_option("--steps", loop.steps, "budget in steps, instead of minutes");
  app.add_option("--rate", loop.rate, "highest learning rate")->capture_default_str();
  app.add_option("--warm-up", loop.warm_up, "share of the budget in which the rate rises")
      ->capture_default_str();
  app.add_option("--decay", loop.decay, "weight decay")->capture_default_str();
  app.add_option("--clip", loop.clip, "largest norm of the gradient; 0: any")->capture_default_str();
  app.add_option("--average", loop.average, "of the weights' running average; 0: none")
      ->capture_default_str();
  app.add_option("--seed", loop.seed, "order of the texts, and everything drawn")->capture_default_str();
  app.add_option("-t,--threads", loop.threads, "0: all cores")->capture_default_str();
  app.add_flag("--bf16,!--no-bf16", loop.bf16, "multiply in bf16 (default), or in f32");
  app.add_flag("--resume", loop.resume, "go on from OUT.checkpoint, with the options it was begun with");
  app.add_option("--checkpoint-minutes", loop.checkpoint_minutes, "between checkpoints")
      ->capture_default_str();
  app.add_option("--judge-steps", loop.judge_steps, "between judgements on held-out text")
      ->capture_default_str();
  app.add_option("--judge-tokens", loop.judge_tokens, "of held-out text, at most; all of it in the end")
      ->capture_default_str();
  app.add_option("--window", loop.window, "tokens of a stretch of text")->capture_default_str();
  app.add_option("--context", loop.context, "of which so many only give the others a past")
      ->capture_default_str();
  app.add_option("--batch-tokens", loop.batch_tokens, "tokens of a step, padding included")
      ->capture_default_str();
  app.add_option("--held-out", loop.held_out, "share of the texts that is judged on")->capture_default_str();
}

}  // namespace coppice::app
