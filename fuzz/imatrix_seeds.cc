// Both formats, for one matrix and for three experts.
#include <cstring>

#include "gguf/writer.h"
#include "seeds.h"

namespace coppice::core {
namespace {

void write_seeds(const std::string& folder) {
  const Format& f32 = *find_format("F32");
  const std::vector<float> values(12, 3.0f), counts = {2, 0, 5};
  gguf::Writer writer;
  writer.add_text("general.type", "imatrix");
  writer.add_u32("imatrix.chunk_count", 3);
  writer.add_values("a.in_sum2", f32, {4, 1}, std::span(values).first(4));
  writer.add_values("a.counts", f32, {1, 1}, std::span(counts).first(1));
  writer.add_values("exps.in_sum2", f32, {4, 3}, values);
  writer.add_values("exps.counts", f32, {1, 3}, counts);
  write_seed(folder, "gguf", writer.to_bytes());

  std::string older;
  const auto number = [&](auto value) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    older.append(bytes, sizeof(value));
  };
  number(2);
  for (const char* name : {"a", "b.weight"}) {
    number(static_cast<std::int32_t>(std::strlen(name)));
    older += name;
    number(7);
    number(3);
    for (int i = 0; i < 3; ++i) number(1.5f * static_cast<float>(i));
  }
  number(10);
  number(4);
  older += "text";
  write_seed(folder, "older", older);
}

}  // namespace
}  // namespace coppice::core

int main(int count, char** arguments) {
  if (count != 2) return 2;
  coppice::core::write_seeds(arguments[1]);
}
