#include "gguf/writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "gguf/file.h"

namespace coppice::core::gguf {
namespace {

std::vector<float> ramp(int count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(i) - 0.7f;
  return values;
}

std::vector<const Format*> written_formats() {
  std::vector<const Format*> rows;
  for (const Format& row : formats())
    if (row.quantize != nullptr) rows.push_back(&row);
  return rows;
}

Writer with_everything() {
  Writer writer;
  writer.add_text("text", "line\nbreak");
  writer.add_texts("texts", {"a", "", "c"});
  writer.add_u32("u32", 1);
  writer.add_i32("i32", -1);
  writer.add_u64("u64", 1ull << 40);
  writer.add_f32("f32", 0.1f);
  writer.add_bool("bool", false);
  writer.add_f32s("f32s", {});
  for (const Format* row : written_formats())
    writer.add_values("tensor." + std::string(row->name), *row, {256, 3}, ramp(768));
  return writer;
}

TEST(GgufWriter, TheFileOnDiskIsTheBytesInMemory) {
  char pattern[] = "/tmp/coppice-gguf-XXXXXX";
  const std::string directory = ::mkdtemp(pattern);
  const std::string path = directory + "/a.gguf";
  const Writer writer = with_everything();
  ASSERT_TRUE(writer.write(path));
  const std::string text = read_file(path).value();
  const auto bytes = writer.to_bytes();
  ASSERT_EQ(text.size(), bytes.size());
  EXPECT_EQ(std::memcmp(text.data(), bytes.data(), bytes.size()), 0);
  const auto file = File::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)->tensors().size(), written_formats().size());
  std::filesystem::remove_all(directory);
}

TEST(GgufWriter, CopyingEveryKeyAndTensorGivesTheSameFile) {
  const auto bytes = with_everything().to_bytes();
  const auto file = File::parse(bytes, "a");
  ASSERT_TRUE(file) << file.error().message;
  Writer copy;
  for (const Key& key : (*file)->keys()) copy.copy(key);
  for (const Tensor& tensor : (*file)->tensors()) copy.copy(tensor);
  EXPECT_TRUE(copy.to_bytes() == bytes);
}

TEST(GgufWriter, ValuesAreQuantisedByTheFormat) {
  const auto bytes = with_everything().to_bytes();
  const auto file = File::parse(bytes, "a");
  ASSERT_TRUE(file);
  for (const Format* row : written_formats()) {
    std::vector<std::byte> expected(row_bytes(*row, 768));
    row->quantize(ramp(768).data(), nullptr, expected.data(), 768);
    const Tensor* tensor = (*file)->tensor("tensor." + std::string(row->name));
    ASSERT_EQ(tensor->bytes, expected.size());
    EXPECT_EQ(std::memcmp(tensor->data, expected.data(), expected.size()), 0) << row->name;
  }
}

TEST(GgufWriter, AKeyAddedAgainReplacesTheEarlierInItsPlace) {
  Writer writer = with_everything();
  writer.add_u32("u32", 99);
  const auto bytes = writer.to_bytes();
  const auto file = File::parse(bytes, "a");
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->integer("u32").value(), 99);
  EXPECT_EQ((*file)->keys()[2].name, "u32");
  EXPECT_EQ((*file)->keys().size(), 8u);
}

TEST(GgufWriter, AMovedWriterKeepsItsTensors) {
  Writer first = with_everything();
  const auto bytes = first.to_bytes();
  const Writer second = std::move(first);
  EXPECT_TRUE(second.to_bytes() == bytes);
}

TEST(GgufWriter, AFolderThatIsNotThereIsAnError) {
  const Status status = with_everything().write("/no/such/folder/a.gguf");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "/no/such/folder/a.gguf: cannot create: No such file or directory");
}

}  // namespace
}  // namespace coppice::core::gguf
