// A token is an index into the model's vocabulary.
#pragma once

#include <cstdint>

namespace coppice {

using Token = std::int32_t;
inline constexpr Token kNoToken = -1;

}  // namespace coppice
