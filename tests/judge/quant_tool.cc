// The formats as a filter, for formats_against_gguf.py: bytes from stdin, bytes to stdout.
//   quant_tool unpack FORMAT            blocks -> f32
//   quant_tool quantize FORMAT          f32 -> blocks
//   quant_tool repack FORMAT INPUTS     blocks of rows of INPUTS values -> packed layout -> f32
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "quant/formats.h"

namespace coppice::core {
namespace {

int usage() {
  std::fprintf(stderr, "usage: quant_tool unpack|quantize|repack FORMAT [INPUTS]\n");
  return 2;
}

std::vector<std::byte> read_input() {
  std::vector<std::byte> bytes;
  std::byte buffer[65536];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof(buffer), stdin)) > 0;)
    bytes.insert(bytes.end(), buffer, buffer + got);
  return bytes;
}

int print(const void* data, std::size_t bytes) {
  return std::fwrite(data, 1, bytes, stdout) == bytes && std::fflush(stdout) == 0 ? 0 : 1;
}

std::int64_t values_in(const Format& format, const std::vector<std::byte>& blocks) {
  return static_cast<std::int64_t>(blocks.size()) / format.block_bytes * format.block_values;
}

int unpack(const Format& format, const std::vector<std::byte>& blocks) {
  std::vector<float> values(static_cast<std::size_t>(values_in(format, blocks)));
  format.unpack(blocks.data(), values.data(), static_cast<std::int64_t>(values.size()));
  return print(values.data(), sizeof(float) * values.size());
}

int quantize(const Format& format, const std::vector<std::byte>& input) {
  std::vector<float> values(input.size() / sizeof(float));
  std::memcpy(values.data(), input.data(), sizeof(float) * values.size());
  std::vector<std::byte> blocks(row_bytes(format, static_cast<std::int64_t>(values.size())));
  format.quantize(values.data(), nullptr, blocks.data(), static_cast<std::int64_t>(values.size()));
  return print(blocks.data(), blocks.size());
}

int repack(const Format& format, const std::vector<std::byte>& blocks, int inputs) {
  const auto matrix =
      pack(format, blocks.data(), static_cast<int>(values_in(format, blocks) / inputs), inputs);
  if (!matrix) {
    std::fprintf(stderr, "%s\n", matrix.error().message.c_str());
    return 2;
  }
  std::vector<float> values(static_cast<std::size_t>(matrix->outputs) * static_cast<std::size_t>(inputs));
  for (int output = 0; output < matrix->outputs; ++output)
    unpack_row(*matrix, output, values.data() + static_cast<std::ptrdiff_t>(output) * inputs);
  return print(values.data(), sizeof(float) * values.size());
}

int run(int count, char** arguments) {
  if (count < 3) return usage();
  const std::string verb = arguments[1];
  const Format* format = find_format(std::string_view(arguments[2]));
  if (format == nullptr) return usage();
  if (verb == "unpack") return unpack(*format, read_input());
  if (verb == "quantize") return quantize(*format, read_input());
  if (verb == "repack" && count == 4) return repack(*format, read_input(), std::atoi(arguments[3]));
  return usage();
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) { return coppice::core::run(count, arguments); }
