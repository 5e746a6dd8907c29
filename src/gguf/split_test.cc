// A model in three parts is the model in one: written to a folder, opened by any of them. Then what is said
// of parts that are missing, have another's place, or contradict each other.
#include "gguf/split.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "gguf/writer.h"

namespace coppice::core::gguf {
namespace {

namespace fs = std::filesystem;

const Format& f32() { return *find_format("F32"); }

// Part `number` of `count`: keys of the model in the first alone, as the splitters write it.
Writer part(int number, int count, int all_tensors) {
  Writer writer;
  if (number == 0) {
    writer.add_text("general.architecture", "llama");
    writer.add_texts("tokenizer.ggml.tokens", {"a", "b"});
  }
  writer.add_u32("split.no", static_cast<std::uint32_t>(number));
  writer.add_u32("split.count", static_cast<std::uint32_t>(count));
  writer.add_i32("split.tensors.count", all_tensors);
  writer.add_values(fmt::format("t{}.weight", number), f32(), {4},
                    std::vector<float>(4, static_cast<float>(number)));
  return writer;
}

class Split : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/coppice-split-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    for (int i = 0; i < 3; ++i) put(i, part(i, 3, 3));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(int number) const { return split_path({folder_ + "/m", number, 3}); }
  void put(int number, const Writer& writer) const { ASSERT_TRUE(writer.write(path(number))); }
  // The message without the folder.
  std::string message(int number) const {
    const auto file = File::open(path(number));
    if (file) return "no error";
    std::string said = file.error().message;
    for (std::size_t at = 0; (at = said.find(folder_ + "/")) != std::string::npos;)
      said.erase(at, folder_.size() + 1);
    return said;
  }

  std::string folder_;
};

TEST_F(Split, AnyPartOpensTheWholeModel) {
  for (int opened = 0; opened < 3; ++opened) {
    const auto file = File::open(path(opened));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ((*file)->path(), path(0));
    ASSERT_EQ((*file)->parts().size(), 3u);
    EXPECT_EQ((*file)->bytes(), fs::file_size(path(0)) + fs::file_size(path(1)) + fs::file_size(path(2)));
    EXPECT_EQ((*file)->text("general.architecture").value(), "llama");
    EXPECT_EQ((*file)->keys().size(), 2u) << "what counts the parts is no key of the model";
    ASSERT_EQ((*file)->tensors().size(), 3u);
    for (int i = 0; i < 3; ++i) {
      const Tensor* tensor = (*file)->tensor(fmt::format("t{}.weight", i));
      ASSERT_NE(tensor, nullptr);
      EXPECT_EQ(tensor->part, i);
      float value = -1;
      std::memcpy(&value, tensor->data, sizeof(value));
      EXPECT_EQ(value, static_cast<float>(i));
      (*file)->release({tensor->data, tensor->bytes});
      std::memcpy(&value, tensor->data, sizeof(value));
      EXPECT_EQ(value, static_cast<float>(i)) << "released bytes are read again";
    }
    (*file)->release();
  }
}

TEST_F(Split, TheHashIsThatOfAllPartsWhicheverIsNamed) {
  const Hash128 whole = *hash_of_file(path(0));
  EXPECT_EQ(*hash_of_file(path(2)), whole);
  EXPECT_EQ(hash_of_parts(**File::open(path(1))), whole);
  Writer other = part(2, 3, 3);
  other.add_text("note", "changed");
  put(2, other);
  EXPECT_NE(to_hex(*hash_of_file(path(0))), to_hex(whole));
  // One file: the hash of its bytes, whatever it is.
  const std::string text = folder_ + "/x.gguf";
  ASSERT_TRUE(
      write_file(text, [](const Append& append) { return append(std::as_bytes(std::span("no model"))); }));
  EXPECT_EQ(*hash_of_file(text), hash_of(std::as_bytes(std::span("no model"))));
}

TEST_F(Split, AMissingPartIsNamed) {
  fs::remove(path(1));
  EXPECT_EQ(message(0),
            "m-00002-of-00003.gguf: cannot open: No such file or directory (it is part 2 of the 3 that "
            "m-00001-of-00003.gguf belongs to)");
  EXPECT_EQ(message(2),
            "m-00002-of-00003.gguf: cannot open: No such file or directory (it is part 2 of the 3 that "
            "m-00003-of-00003.gguf belongs to)");
}

TEST_F(Split, ADamagedPartIsNamed) {
  fs::resize_file(path(2), fs::file_size(path(2)) - 20);
  EXPECT_TRUE(message(0).starts_with("m-00003-of-00003.gguf: the file is truncated: ")) << message(0);
}

TEST_F(Split, APartInAnothersPlaceIsNamed) {
  put(1, part(2, 3, 3));
  EXPECT_EQ(message(0),
            "m-00002-of-00003.gguf: says that it is part 3, but it is in the place of part 2 of 3");
  put(1, part(1, 4, 3));
  EXPECT_EQ(message(0), "m-00002-of-00003.gguf: says that it is one of 4 parts, but it lies among 3");
  Writer whole;
  whole.add_values("t1.weight", f32(), {1}, std::vector<float>{1});
  put(1, whole);
  EXPECT_EQ(message(0), "m-00002-of-00003.gguf: says that it is one of 1 parts, but it lies among 3");
}

TEST_F(Split, ARenamedPartSaysWhichNameItWants) {
  const std::string other = folder_ + "/model.gguf";
  fs::rename(path(0), other);
  const auto file = File::open(other);
  ASSERT_FALSE(file);
  EXPECT_EQ(
      file.error().message,
      other +
          ": is part 1 of 3 of a split model, but its name does not end in -00001-of-00003.gguf, so the "
          "other parts cannot be found: give the parts their names back");
}

TEST_F(Split, PartsThatCountDifferentlyAreRefused) {
  put(2, part(2, 3, 4));
  EXPECT_EQ(message(0),
            "m-00003-of-00003.gguf: says that all parts have 4 tensors, but m-00001-of-00003.gguf says 3");
  for (int i = 0; i < 3; ++i) put(i, part(i, 3, 4));
  EXPECT_EQ(message(0),
            "m-00001-of-00003.gguf: says that all parts have 4 tensors, but together they have 3");
}

TEST_F(Split, ATensorInTwoPartsIsRefused) {
  Writer twice = part(2, 3, 4);
  twice.add_values("t0.weight", f32(), {4}, std::vector<float>(4, 9.0f));
  put(0, part(0, 3, 4));
  put(1, part(1, 3, 4));
  put(2, twice);
  EXPECT_EQ(
      message(0),
      "m-00003-of-00003.gguf: tensor 't0.weight' is in m-00001-of-00003.gguf as well; names must differ");
}

TEST_F(Split, OnePartOfOneIsAWholeFile) {
  const std::string other = folder_ + "/model.gguf";
  ASSERT_TRUE(part(0, 1, 1).write(other));
  const auto file = File::open(other);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ((*file)->parts().size(), 1u);
}

TEST(SplitName, IsReadFromTheEndOfAPath) {
  const auto name = split_name("a-b/m-00001-of-00002-00010-of-00012.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "a-b/m-00001-of-00002");
  EXPECT_EQ(name->number, 9);
  EXPECT_EQ(name->count, 12);
  EXPECT_EQ(split_path(*name), "a-b/m-00001-of-00002-00010-of-00012.gguf");
  for (const char* none : {"m.gguf", "-00001-of-00002.gguf", "m-0001-of-0002.gguf", "m-00003-of-00002.gguf",
                           "m-00000-of-00002.gguf", "m-00001-of-00002.bin", "m-+0001-of-00002.gguf",
                           "m-00001_of_00002.gguf", "m-0-001-of-00002.gguf", ""})
    EXPECT_FALSE(split_name(none)) << none;
}

}  // namespace
}  // namespace coppice::core::gguf
