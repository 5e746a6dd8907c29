// One small right input of each kind; the first byte is the kind.
#include "corpus/corpus_folder.h"
#include "seeds.h"

namespace coppice::core {
namespace {

std::string integers() { return std::string("\1\0\0\0\2\0\0\0\xff\xff\xff\xff\3\0\0\0", 16); }

std::string npy() {
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\1\0\x76\0", 10) + header + integers();
}

void write_seeds(const std::string& folder) {
  CorpusDescription description;
  description.shape = {7, 20, 2, 1, 64};
  description.target = "model.gguf";
  description.target_hash = std::string(32, '0');
  description.feature_layers = {3};
  description.kinds = {"code", "talk"};
  description.settings["temperature"] = 0.8;
  write_seed(folder, "corpus", "c" + description.to_text());
  write_seed(
      folder, "jsonl",
      "j{\"ids\": [1, 2, 3], \"start\": 1}\n\n{\"text\": \"hello\"}\n"
      "{\"ids\": [4], \"temperature\": 0.5, \"top_k\": 40, \"seed\": 18446744073709551615, \"stream\": 2}\n");
  write_seed(folder, "npy", "n" + npy());
  write_seed(folder, "bin", "b" + integers());
  write_seed(folder, "text", "thello world\xff\n");
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seeds(arguments[1]);
}
