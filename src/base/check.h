// A broken invariant of ours is a bug, not an input: say where and stop.
#pragma once

#include <coppice/error.h>

namespace coppice {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace coppice

#define COPPICE_CHECK(expression) \
  ((expression) ? (void)0 : ::coppice::check_failed(#expression, __FILE__, __LINE__))

#define COPPICE_CONCAT_(a, b) a##b
#define COPPICE_CONCAT(a, b) COPPICE_CONCAT_(a, b)
// COPPICE_TRY(auto x, f()): x is f()'s value, or this function returns f()'s error.
#define COPPICE_TRY(declaration, expression)                                    \
  auto COPPICE_CONCAT(try_, __LINE__) = (expression);                           \
  if (!COPPICE_CONCAT(try_, __LINE__))                                          \
    return ::tl::unexpected(std::move(COPPICE_CONCAT(try_, __LINE__)).error()); \
  declaration = std::move(*COPPICE_CONCAT(try_, __LINE__))
#define COPPICE_TRY_STATUS(expression)                                       \
  do {                                                                       \
    auto try_status = (expression);                                          \
    if (!try_status) return ::tl::unexpected(std::move(try_status).error()); \
  } while (false)
