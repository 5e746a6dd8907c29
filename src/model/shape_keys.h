// How a model's shape is read from the keys of its file, with the same checks and sentences for every
// architecture and for draft heads.
#pragma once

#include <coppice/error.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "gguf/file.h"
#include "model/config.h"

namespace coppice::core {

// Far above any model there is, and low enough that no product of two sizes overflows 64 bits.
inline constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;

// Reads keys under the architecture's prefix, and remembers which.
struct ShapeKeys {
  const gguf::File& file;
  std::string prefix;
  mutable std::set<std::string, std::less<>> asked = {};

  std::string key(std::string_view name) const {
    std::string whole = prefix + "." + std::string(name);
    asked.insert(whole);
    return whole;
  }
  bool has(std::string_view name) const { return file.find(key(name)) != nullptr; }
  tl::unexpected<Error> refuse(std::string_view name, std::string_view why) const {
    return fail(fmt::format("{}: {} {}", file.path(), key(name), why));
  }
  Result<int> size(std::string_view name) const {
    COPPICE_TRY(const std::int64_t value, file.integer(key(name)));
    if (value < 1 || value > kMaxSize)
      return refuse(name, fmt::format("is {}, but must be from 1 to {}", value, kMaxSize));
    return static_cast<int>(value);
  }
  Result<int> size_or(std::string_view name, int otherwise) const {
    if (!has(name)) return otherwise;
    return size(name);
  }
  Result<double> positive(std::string_view name) const {
    COPPICE_TRY(const double value, file.number(key(name)));
    if (!std::isfinite(value) || value <= 0)
      return refuse(name, fmt::format("is {}, but must be a positive number", value));
    return value;
  }
  Result<double> positive_or(std::string_view name, double otherwise) const {
    if (!has(name)) return otherwise;
    return positive(name);
  }
};

// Heads and head size; config.hidden is known.
Status read_heads(const ShapeKeys& keys, ModelConfig& config);
// Rotary positions; config.head_dim is known.
Status read_rope(const ShapeKeys& keys, ModelConfig& config);
// How they are scaled; config.context_length is known.
Status read_rope_scaling(const ShapeKeys& keys, ModelConfig& config);
// For what has no use for scaled ones (draft heads).
Status refuse_rope_scaling(const ShapeKeys& keys);

}  // namespace coppice::core
