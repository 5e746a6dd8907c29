// The cuts that splitting rules are made of (split_rules.h). Each is published as a regular expression, which
// stands above its implementation.
#pragma once

#include <cstddef>
#include <string_view>

namespace coppice::core::cuts {

std::size_t gpt2(std::string_view text, std::size_t begin);
std::size_t llama3(std::string_view text, std::size_t begin);
std::size_t qwen2(std::string_view text, std::size_t begin);
std::size_t qwen35(std::string_view text, std::size_t begin);
std::size_t gpt4o(std::string_view text, std::size_t begin);
std::size_t tekken(std::string_view text, std::size_t begin);

std::size_t each_number(std::string_view text, std::size_t begin);
std::size_t each_newline(std::string_view text, std::size_t begin);
std::size_t spaces_at_the_end(std::string_view text, std::size_t begin);
std::size_t punctuation(std::string_view text, std::size_t begin);
std::size_t numeric_bytes(std::string_view text, std::size_t begin);
std::size_t three_digits(std::string_view text, std::size_t begin);

std::size_t letters(std::string_view text, std::size_t begin);
std::size_t marks_of_punctuation(std::string_view text, std::size_t begin);
std::size_t cased_letters(std::string_view text, std::size_t begin);
std::size_t ascii_and_wide_marks(std::string_view text, std::size_t begin);
std::size_t east_asian(std::string_view text, std::size_t begin);

}  // namespace coppice::core::cuts
