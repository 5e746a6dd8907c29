// Which tensor of a model gets which format: the table of mixes, what is left as it is, what a width allows.
// docs/quantizing.md states it for people.
#pragma once

#include <coppice/error.h>
#include <coppice/quantize.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace coppice {

// Tensors of a block that a mix may treat better than others: in no block; in the first eighth of all blocks;
// in that, the last eighth and every third between; in all.
enum class BetterBlocks { none, first, some, all };

struct QuantizeMix {
  std::string_view name;
  std::uint32_t file_type;  // general.file_type
  std::string_view most;    // matrices
  std::string_view attention_output;
  std::string_view value_and_down;  // attn_v, attn_qkv and ffn_down,
  std::string_view better;          // and in these blocks
  BetterBlocks where;
  std::string_view head;  // output, or the embedding where it is the head
};

std::span<const QuantizeMix> quantize_mixes();

class QuantizePlan {
 public:
  // Errors name what QuantizeOptions says wrong.
  static Result<QuantizePlan> make(const core::gguf::File& file, const QuantizeOptions& options);

  struct Choice {
    const core::Format* format;
    std::string why;
  };
  Choice choose(const core::gguf::Tensor& tensor) const;
  std::uint32_t file_type() const { return file_type_; }

 private:
  struct Keep {
    std::string pattern;
    const core::Format* format;
  };

  Status read_keep(const core::gguf::File& file, std::span<const std::string> keep);
  Choice by_mix(const core::gguf::Tensor& tensor) const;

  const core::Format* format_ = nullptr;  // of every matrix, or
  const QuantizeMix* mix_ = nullptr;
  std::uint32_t file_type_ = 0;
  std::vector<Keep> keep_;
  int blocks_ = 0;
  bool tied_ = false;
};

}  // namespace coppice
