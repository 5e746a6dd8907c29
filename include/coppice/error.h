// Errors as values. Bad input of any kind (a file, a prompt, an option, a request) becomes an Error with one
// sentence a person can act on: what was wrong, where (file, tensor, offset, option), what would be right.
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace coppice {

struct Error {
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(std::string message) {
  return tl::unexpected<Error>(Error{std::move(message)});
}

}  // namespace coppice
