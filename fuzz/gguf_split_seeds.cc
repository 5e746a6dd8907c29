// Models in two and three parts, right ones and some that contradict themselves; and names of parts.
#include "gguf/writer.h"
#include "seeds.h"

namespace coppice::core {
namespace {

std::vector<std::byte> part(std::uint32_t number, std::uint32_t count, std::int32_t tensors,
                            std::size_t size) {
  gguf::Writer writer;
  if (number == 0) writer.add_text("general.architecture", "llama");
  writer.add_u32("split.no", number);
  writer.add_u32("split.count", count);
  writer.add_i32("split.tensors.count", tensors);
  writer.add_values("t" + std::to_string(number), *find_format("F32"), {static_cast<std::int64_t>(size)},
                    std::vector<float>(size, 1.0f));
  return writer.to_bytes();
}

// As the target takes them apart.
void write_parts(const std::string& folder, const std::string& name,
                 const std::vector<std::vector<std::byte>>& parts) {
  const std::size_t first = parts[0].size();
  std::vector<std::byte> all = {static_cast<std::byte>(first), static_cast<std::byte>(first >> 8)};
  for (const auto& bytes : parts) all.insert(all.end(), bytes.begin(), bytes.end());
  write_seed(folder, name, all);
}

void write_seeds(const std::string& folder) {
  write_parts(folder, "two", {part(0, 2, 2, 4), part(1, 2, 2, 8)});
  write_parts(folder, "three", {part(0, 3, 3, 4), part(1, 3, 3, 8), part(2, 3, 3, 8)});
  write_parts(folder, "twice", {part(0, 2, 2, 4), part(0, 2, 2, 4)});
  write_parts(folder, "count", {part(0, 2, 9, 4), part(1, 2, 9, 4)});
  write_parts(folder, "one", {part(0, 1, 1, 4), {}});
  write_seed(folder, "name", "a/model-00002-of-00011.gguf");
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seeds(arguments[1]);
}
