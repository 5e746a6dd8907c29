// Each part of the grammar once.
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string_view seeds[] = {
      "none",
      "lookup",
      "stage(draft.gguf, ngram(code.ngram) | lookup) | lookup",
      "ngram(\"my \\\"best\\\" \\\\ file\", \"word\", \"a=b\", order = 3, back=\"off it\")",
      "stage(a.gguf, stage(b.gguf, stage(c.gguf, lookup(min=2))))",
  };
  for (std::size_t i = 0; i < std::size(seeds); ++i)
    coppice::core::write_seed(arguments[1], std::to_string(i), seeds[i]);
}
