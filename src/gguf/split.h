// A split model: parts called NAME-00001-of-00003.gguf, each a whole GGUF file with some of the tensors. Keys
// say which part a file is: split.no (from 0), split.count, split.tensors.count (of all parts together).
#pragma once

#include <coppice/error.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "gguf/file.h"

namespace coppice::core::gguf {

// What a path says of itself: "a/b-00002-of-00003.gguf" is {"a/b", 1, 3}.
struct SplitName {
  std::string prefix;
  int number = 0;  // from 0
  int count = 0;
};
std::optional<SplitName> split_name(std::string_view path);
std::string split_path(const SplitName& name);

// By which a report says which model it is about: the hash of the file's bytes, and of a split one the hash
// of its parts' hashes in order. The memory of what was read goes back to the system.
Hash128 hash_of_parts(const File& file);

// The same of any file, of which only a split GGUF has parts.
Result<Hash128> hash_of_file(const std::string& path);

}  // namespace coppice::core::gguf
