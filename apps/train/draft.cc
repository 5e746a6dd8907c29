#include <memory>

#include "flags.h"

namespace coppice::app {
namespace {

void add_shape(CLI::App& app, DraftTraining& draft) {
  app.add_option("--layers", draft.layers, "blocks of the draft")->capture_default_str();
  app.add_option("--source-layers", draft.source_layers,
                 "layers of the target it begins with, as 0,29; default: first and last ones")
      ->delimiter(',');
  app.add_option("--heads", draft.heads, "query heads; 0: as many as the target")->capture_default_str();
  app.add_option("--kv-heads", draft.kv_heads, "key and value heads; 0: as many as the target")
      ->capture_default_str();
  app.add_option("--hidden", draft.hidden, "hidden size at width 1; 0: two thirds of the target's")
      ->capture_default_str();
  app.add_option("--widths", draft.widths, "factors of the hidden size that it can run at")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--exit-layer", draft.exit_layer, "blocks before the exit at width 0.75; 0: no exit")
      ->capture_default_str();
  app.add_option("--vocab", draft.vocabulary, "how many tokens it can guess, the most used ones")
      ->capture_default_str();
}

void add_recipe(CLI::App& app, DraftTraining& draft) {
  app.add_option("--loss", draft.loss, "kl, tv (total variation), lk (likelihood of acceptance) or mix")
      ->capture_default_str();
  app.add_option("--temperature", draft.temperature, "of both distributions; below 1 is sharper")
      ->capture_default_str();
  app.add_option("--negatives", draft.negatives, "tokens drawn beside those the target names; 0: all")
      ->capture_default_str();
  app.add_option("--narrow-part", draft.narrow_part, "share of a step's texts that narrower widths see")
      ->capture_default_str();
  app.add_option("--imitate", draft.imitate, "weight of imitating the widest slice")->capture_default_str();
  app.add_flag("--train-embedding,!--freeze-embedding", draft.train_embedding,
               "embeddings of the tokens it can guess learn, too (default)");
  app.add_flag("--share-embedding", draft.share_embedding,
               "tokens it cannot guess take the embedding of one like them: a smaller file");
  app.add_option("--rollouts", draft.rollouts, "corpus of the draft's own text, scored by the target");
  app.add_option("--rollout-share", draft.rollout_share, "share of the steps that learn from it")
      ->capture_default_str();
}

void add_formats(CLI::App& app, DraftTraining& draft) {
  app.add_option("--format", draft.format, "of the blocks' matrices in the file")->capture_default_str();
  app.add_option("--head-format", draft.head_format, "of the head")->capture_default_str();
  app.add_option("--embedding-format", draft.embedding_format, "of the embedding")->capture_default_str();
}

}  // namespace

void add_train_draft(CLI::App& app, const ChooseTraining& choose, const std::string& command) {
  const auto draft = std::make_shared<DraftTraining>();
  CLI::App* sub = app.add_subcommand("draft", "a small llama that runs at several widths");
  draft->command = command;
  add_files(*sub, *draft);
  add_shape(*sub, *draft);
  add_recipe(*sub, *draft);
  add_formats(*sub, *draft);
  add_loop(*sub, draft->loop);
  choose_with(*sub, draft, choose, train_draft);
}

}  // namespace coppice::app
