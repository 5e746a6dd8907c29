// answer MODEL.gguf PROMPT: goes on with the prompt.
#include <coppice/coppice.h>

#include <cstdio>

static int refuse(const coppice::Error& error) {
  return std::fprintf(stderr, "answer: %s\n", error.message.c_str()), 2;
}

int main(int argc, char** argv) {
  if (argc != 3) return refuse({"say a model and a prompt"});
  auto model = coppice::Model::load(argv[1]);
  if (!model) return refuse(model.error());
  auto engine = coppice::Engine::make(*model);
  if (!engine) return refuse(engine.error());
  coppice::Request request;
  request.prompt = model->tokenizer().encode(argv[2]);
  request.sampling.max_tokens = 24;
  auto answer = engine->generate(request);
  if (!answer) return refuse(answer.error());
  std::printf("%s\n", answer->text.c_str());
}
