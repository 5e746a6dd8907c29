// Any bytes as what texts come in: the description of a corpus, and files of tokens and texts. Refused with a
// sentence, or every token is one of the vocabulary. The first byte says which.
#include <unistd.h>

#include <cstdlib>

#include "base/check.h"
#include "base/os.h"
#include "corpus/corpus_folder.h"
#include "draft/ngram_corpus.h"
#include "text/test_vocabulary.h"

namespace coppice::core {
namespace {

const Tokenizer& tokenizer() {
  static const auto made = *Tokenizer::make(testing::small_vocabulary());
  return *made;
}

// One folder for the process.
const std::string& folder() {
  static const std::string path = [] {
    char pattern[] = "/tmp/coppice-fuzz-XXXXXX";
    COPPICE_CHECK(::mkdtemp(pattern) != nullptr);
    static std::string made = pattern;
    std::atexit([] {
      for (const char* ending : {".jsonl", ".npy", ".bin", ".txt"})
        ::unlink((made + "/input" + ending).c_str());
      ::rmdir(made.c_str());
    });
    return made;
  }();
  return path;
}

void read_as(const char* ending, std::span<const std::byte> bytes) {
  const std::string path = folder() + "/input" + ending;
  COPPICE_CHECK(write_file(path, [&](const Append& append) { return append(bytes); }));
  const Status read = read_texts(tokenizer(), path, [](const CorpusText& text) {
    COPPICE_CHECK(text.start <= text.tokens.size());
    for (const Token token : text.tokens) COPPICE_CHECK(token >= 0 && token < tokenizer().size());
  });
  if (!read) COPPICE_CHECK(read.error().message.starts_with(path));
}

void describe(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto described = CorpusDescription::parse(text, "input");
  if (described) {
    described->to_text();
  } else {
    COPPICE_CHECK(described.error().message.starts_with("input: "));
  }
}

}  // namespace
}  // namespace coppice::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0]) {
    case 'j':
      core::read_as(".jsonl", bytes);
      break;
    case 'n':
      core::read_as(".npy", bytes);
      break;
    case 'b':
      core::read_as(".bin", bytes);
      break;
    case 't':
      core::read_as(".txt", bytes);
      break;
    default:
      core::describe(bytes);
  }
  return 0;
}
