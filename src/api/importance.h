// An importance matrix, as a file: for each matrix of a model, the mean square of what each of its inputs is
// multiplied by. The error of a product is the sum of the weights' squared errors times this, as far as
// inputs do not go together.
//
// Two formats, told apart by their first bytes:
//   GGUF    for a tensor NAME two f32 tensors: NAME.in_sum2 [inputs, matrices], sums of squares, and
//           NAME.counts [1, matrices], of how many tokens
//   older   i32 entries; of each i32 length, name, i32 calls, i32 values, f32 [values], which are the means
//           times the calls; then what the text was, which is not read
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

class ImportanceMatrix {
 public:
  static Result<ImportanceMatrix> read(const std::string& path);
  // Errors begin with `name`. Every value of an entry is finite and at least 0.
  static Result<ImportanceMatrix> parse(std::span<const std::byte> bytes, const std::string& name);

  // [matrices * inputs] of the tensor; null where it is not known. 1 for a matrix that no token met.
  const std::vector<float>* find(std::string_view tensor) const;
  std::size_t entries() const { return means_.size(); }

 private:
  friend class ImportanceReader;
  std::map<std::string, std::vector<float>, std::less<>> means_;
};

}  // namespace coppice
