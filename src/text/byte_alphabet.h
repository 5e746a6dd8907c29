// GPT-2's byte alphabet: vocabularies of byte-level BPE spell each of the 256 bytes as one printable
// character (a space is U+0120), so that any bytes can stand in a text file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coppice::core {

// The bytes a token's spelling stands for; nothing if a character of it is not in the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);
std::string spelling_of_bytes(std::string_view bytes);

}  // namespace coppice::core
