// Small right shards: with and without log-probabilities and features, with no text, with one that is all
// prompt.
#include "corpus/corpus_file.h"
#include "seeds.h"

namespace coppice::core {
namespace {

void write_seeds(const std::string& folder) {
  for (const int top_k : {0, 2, 4})
    for (const int features : {0, 1, 2}) {
      const CorpusShape shape{7, 20, top_k, features, 2};
      CorpusShardWriter writer(shape);
      for (int tokens = 1; tokens < 5; ++tokens) {
        CorpusRecord text;
        text.start = (tokens + 1) / 2;
        for (int i = 0; i < tokens; ++i) text.ids.push_back(i);
        const auto said = static_cast<std::size_t>((tokens - text.start) * top_k);
        text.top_tokens.assign(said, 3);
        text.top_logprobs.assign(said, 0xbc00);  // -1
        text.features.assign(static_cast<std::size_t>(tokens * features * 2), 0x3c00);
        writer.add(text);
      }
      write_seed(folder, "k" + std::to_string(top_k) + "f" + std::to_string(features), writer.to_bytes());
    }
  write_seed(folder, "none", CorpusShardWriter({7, 20, 2, 0, 2}).to_bytes());
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seeds(arguments[1]);
}
