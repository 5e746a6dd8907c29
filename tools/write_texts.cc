// coppice_write_texts MODEL.gguf PROMPTS.jsonl OUT.jsonl: the model's own texts after given prompts (the ids
// before `start` of each line), with the options and the noise key kept beside them, so that a fit can know
// the noise of every draw.
#include <coppice/engine.h>
#include <coppice/model.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace coppice::tools {
namespace {

using Json = nlohmann::json;

struct Setup {
  std::string model, in, out, drafters = "lookup";
  int limit = 0, tokens = 128, at_once = 4;
  std::vector<std::string> kinds;
  Sampling sampling;
};

struct Prompt {
  std::string kind;
  std::vector<Token> ids;
};

// `limit` of them, spread over the file.
Result<std::vector<Prompt>> read_prompts(const Setup& setup) {
  std::ifstream in(setup.in);
  if (!in) return fail("cannot read " + setup.in);
  std::vector<Prompt> all;
  for (std::string line; std::getline(in, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object())
      return fail(fmt::format("{}, line {}: not a JSON object", setup.in, all.size() + 1));
    auto ids = json.at("ids").get<std::vector<Token>>();
    ids.resize(std::min(ids.size(), json.value("start", ids.size())));
    if (!ids.empty()) all.push_back({json.value("kind", "text"), std::move(ids)});
  }
  if (setup.limit == 0 || setup.limit >= static_cast<int>(all.size())) return all;
  std::vector<Prompt> some;
  some.reserve(static_cast<std::size_t>(setup.limit));
  for (int i = 0; i < setup.limit; ++i) some.push_back(all[all.size() * i / setup.limit]);
  return some;
}

Status run(const Setup& setup) {
  COPPICE_TRY(const auto prompts, read_prompts(setup));
  COPPICE_TRY(const Model model, Model::load(setup.model, {}));
  EngineOptions options;
  options.max_requests = setup.at_once;
  options.speculation.drafters = setup.drafters;
  COPPICE_TRY(Engine engine, Engine::make(model, options));
  std::ofstream out(setup.out);
  std::map<std::uint64_t, std::size_t> running;  // request -> prompt
  std::size_t next = 0;
  while (next < prompts.size() || !running.empty()) {
    while (next < prompts.size() && static_cast<int>(running.size()) < setup.at_once) {
      Request request;
      request.prompt = prompts[next].ids;
      request.sampling = setup.sampling;
      request.sampling.stream = static_cast<std::uint32_t>(next);
      request.sampling.max_tokens = setup.tokens;
      COPPICE_TRY(const std::uint64_t id, engine.submit(request));
      running[id] = next++;
    }
    engine.step();
    for (auto it = running.begin(); it != running.end();) {
      const auto done = engine.take(it->first);
      if (!done) {
        ++it;
        continue;
      }
      const Prompt& prompt = prompts[it->second];
      Json json = {{"kind", prompt.kind},
                   {"temperature", setup.sampling.temperature},
                   {"top_k", setup.sampling.top_k},
                   {"seed", setup.sampling.seed},
                   {"stream", it->second},
                   {"start", prompt.ids.size()},
                   {"ids", prompt.ids}};
      for (const EmittedToken& token : done->tokens) json["ids"].push_back(token.token);
      out << json.dump() << "\n";
      it = running.erase(it);
    }
  }
  return out ? Status{} : fail("cannot write " + setup.out);
}

}  // namespace
}  // namespace coppice::tools

int main(int argc, char** argv) {
  CLI::App app{"Lets a model write texts, their noise keys kept."};
  coppice::tools::Setup setup;
  app.add_option("model", setup.model, "a GGUF file")->required();
  app.add_option("prompts", setup.in, "JSON lines: ids, start")->required();
  app.add_option("out", setup.out, "JSON lines")->required();
  app.add_option("--limit", setup.limit, "prompts, spread over the file");
  app.add_option("--tokens", setup.tokens, "at most, of each text");
  app.add_option("--at-once", setup.at_once, "requests in one pass");
  app.add_option("--drafters", setup.drafters, "only speed depends on it");
  app.add_option("--temperature", setup.sampling.temperature, "0: greedy");
  app.add_option("--top-k", setup.sampling.top_k, "0: off");
  app.add_option("--seed", setup.sampling.seed, "of the noise; the stream is the prompt's number");
  CLI11_PARSE(app, argc, argv);
  const auto done = coppice::tools::run(setup);
  if (!done) fmt::print(stderr, "coppice_write_texts: {}\n", done.error().message);
  return done ? 0 : 2;
}
