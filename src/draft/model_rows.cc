// How `model` and `stage` are made from their expressions.
#include <cmath>
#include <cstdlib>

#include "base/check.h"
#include "draft/arguments.h"
#include "draft/model_drafter.h"
#include "model/head_model.h"
#include "model/slim.h"

namespace coppice::core {
namespace {

// width=0.75 or width=exit: one of those the file has.
Result<int> variant_option(const DrafterNode& node, const Model& model) {
  const std::span<const Variant> variants = model.variants();
  for (const auto& [key, value] : node.options) {
    if (key != "width") continue;
    char* end = nullptr;
    const float factor = std::strtof(value.c_str(), &end);
    const bool number = !value.empty() && *end == 0;
    std::vector<std::string_view> names;
    for (int v = 0; v < static_cast<int>(variants.size()); ++v) {
      const bool exit = variants[v].name == "exit";
      if (exit ? value == "exit" : number && std::abs(factor - variants[v].factor) < 1e-4f) return v;
      names.push_back(variants[v].name);
    }
    if (variants.size() == 1)
      return fail(node.name + ": " + model.path() + " has one width only, so width=" + value +
                  " cannot be had; leave it out");
    return fail(node.name + ": " + model.path() + " has no width " + value + "; it has " + choices(names));
  }
  return ModelDrafter::kByCapacity;
}

Result<std::unique_ptr<Drafter>> make_draft(const DrafterNode& node, const DraftEnvironment& environment,
                                            std::unique_ptr<Grower> inner) {
  ModelDrafter::Options options;
  options.name = node.name;
  options.sequences = environment.sequences;
  options.context = environment.context;
  options.cache_type = environment.cache_type;
  inner_options(node, options);
  const std::string& file = node.files[0];
  COPPICE_CHECK(environment.load_model && environment.load_vocabulary && environment.pool != nullptr &&
                environment.vocabulary != nullptr);
  COPPICE_TRY(auto vocabulary, environment.load_vocabulary(file));
  if (Status same = same_vocabulary(*environment.vocabulary, vocabulary); !same)
    return fail("the draft " + file + " cannot guess for this model: " + same.error().message);
  COPPICE_TRY(auto model, environment.load_model(file));
  COPPICE_TRY(options.variant, variant_option(node, *model));
  COPPICE_TRY(auto made, ModelDrafter::make(std::move(model), std::move(inner), options, *environment.pool));
  return std::unique_ptr<Drafter>(std::move(made));
}

}  // namespace

void inner_options(const DrafterNode& node, ModelDrafter::Options& options) {
  Budget& inner = options.inner;
  inner.nodes = int_option(node, "nodes", inner.nodes);
  inner.depth = int_option(node, "depth", inner.depth);
}

Result<std::unique_ptr<Drafter>> make_model(const DrafterNode& node, const DraftEnvironment& environment) {
  return make_draft(node, environment, nullptr);
}

Result<std::unique_ptr<Drafter>> make_stage(const DrafterNode& node, const DraftEnvironment& environment) {
  if (auto file = gguf::File::open(node.files[0]); file && is_head(**file)) {
    const bool substitute = (*file)->integer_or("coppice.head.substitute", 0) != 0;
    return fail(node.files[0] +
                " is a draft head: it reads the target's state at the token before, which nobody has at a "
                "stage's guesses, and " +
                (substitute ? "stages do not use its substitute for missing states yet"
                            : "this one was not trained with a substitute for missing states") +
                "; write head(" + node.files[0] + ") beside the stage");
  }
  COPPICE_TRY(auto inner, make_inner_grower(node.inner, environment));
  return make_draft(node, environment, std::move(inner));
}

}  // namespace coppice::core
