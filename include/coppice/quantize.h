// A model's weights in another block format: fewer bits, or more.
#pragma once

#include <coppice/error.h>
#include <coppice/model.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace coppice {

struct QuantizeOptions {
  std::string input;   // a GGUF file; of a split model any part
  std::string output;  // one file
  // A block format (quantize_formats()): of every matrix. Or a mix, which gives some of them more bits.
  std::string format;
  // An importance matrix: GGUF or the older binary format, as llama.cpp or measure_importance() writes them.
  std::string importance;
  // "NAME=FORMAT": this tensor in this format, whatever else would be chosen; * in NAME stands for any
  // letters. The first that fits counts.
  std::vector<std::string> keep;
  int threads = 0;                       // 0: what this process may use; they change nothing
  std::function<bool(double)> progress;  // fraction written; false stops
};

struct QuantizedTensor {
  std::string name, from, to;
  std::string why;  // where it is not simply the format asked for
  std::vector<std::int64_t> shape;
  std::uint64_t bytes_before = 0, bytes_after = 0;
  bool importance = false;  // the importance matrix knew it
};

struct QuantizeReport {
  std::vector<QuantizedTensor> tensors;
  std::uint64_t bytes_before = 0, bytes_after = 0;  // of the files
};

// Writes aside and renames: the output is whole or not there. All keys are kept, but general.file_type and
// general.quantization_version, which are set, and those that count the parts of a split model. Tensors that
// are in their format already are copied byte by byte. Vectors become f32; what no matrix is (norms,
// positions) stays as it is. Errors name the field, the file or the tensor. docs/quantizing.md has the rules.
Result<QuantizeReport> quantize(const QuantizeOptions& options);

// What QuantizeOptions::format may be.
struct QuantizeFormat {
  std::string name;
  double bits = 0;      // a weight, of most matrices
  std::string summary;  // of a mix: what it gives to which tensors
};
std::vector<QuantizeFormat> quantize_formats();

struct ImportanceOptions {
  std::string source;                    // what the text is called, kept in the file
  int context = 512;                     // tokens are read in chunks of so many
  int chunks = 0;                        // at most; 0: all
  std::string output;                    // a GGUF file, which llama.cpp reads too
  std::function<bool(double)> progress;  // fraction read; false stops
};
struct ImportanceReport {
  int tensors = 0, chunks = 0;
  std::int64_t tokens = 0;
};
// How much each input of each matrix matters on a text: the sum of the squares of what it is multiplied by.
Result<ImportanceReport> measure_importance(const Model& model, std::span<const Token> tokens,
                                            const ImportanceOptions& options);

}  // namespace coppice
