// A file that is right, and what it says; a file that is wrong in one place, and what is said about it. The
// wrong ones are made from the right one by patching bytes.
#include "gguf/file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "gguf/bad_files_testing.h"
#include "gguf/writer.h"
#include "quant/formats.h"

namespace coppice::core::gguf {
namespace {

using Bytes = std::vector<std::byte>;

const Format& format(const char* name) { return *find_format(std::string_view(name)); }

Writer sample() {
  Writer writer;
  writer.add_text("general.name", "sample");
  writer.add_u32("a.count", 7);
  writer.add_i32("a.minus", -3);
  writer.add_u64("a.large", std::numeric_limits<std::uint64_t>::max());
  writer.add_f32("a.base", 10000.0f);
  writer.add_bool("a.flag", true);
  writer.add_texts("a.tokens", {"", "one", "zwei"});
  writer.add_i32s("a.types", {1, -2, 3});
  writer.add_u32s("a.sizes", {4, 5});
  writer.add_f32s("a.scores", {0.5f, -1.5f});
  writer.add_values("first", format("F32"), {5}, std::vector<float>{1, 2, 3, 4, 5});
  writer.add_values("second", format("Q4_1"), {32, 2, 3}, std::vector<float>(192, 0.25f));
  return writer;
}

Result<std::shared_ptr<const File>> parse(const Bytes& bytes) { return File::parse(bytes, "m.gguf"); }

std::string message(const Bytes& bytes) {
  const auto file = parse(bytes);
  return file ? "no error" : file.error().message;
}

// Where `text` begins in the file.
std::size_t position(const Bytes& bytes, std::string_view text) {
  const auto* start = reinterpret_cast<const char*>(bytes.data());
  const auto found = std::search(start, start + bytes.size(), text.begin(), text.end());
  EXPECT_NE(found, start + bytes.size()) << text;
  return static_cast<std::size_t>(found - start);
}

// Overwrites the bytes that begin `after` bytes behind the end of `text`.
template <class T>
Bytes patched(Bytes bytes, std::string_view text, std::ptrdiff_t after, T value) {
  const std::size_t at = position(bytes, text) + text.size() + static_cast<std::size_t>(after);
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return bytes;
}

template <class T>
Bytes patched_at(Bytes bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  return bytes;
}

Bytes renamed(Bytes bytes, std::string_view from, std::string_view to) {
  EXPECT_EQ(from.size(), to.size());
  std::memcpy(bytes.data() + position(bytes, from), to.data(), to.size());
  return bytes;
}

constexpr std::size_t kVersionAt = 4, kTensorsAt = 8, kKeysAt = 16;
// Behind a tensor's name: rank u32, sizes u64 each, format u32, offset u64.
constexpr std::ptrdiff_t kRank = 0, kSize0 = 4;

TEST(GgufFile, SaysWhatWasWritten) {
  const Bytes bytes = sample().to_bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  const File& file = **parsed;
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.path(), "m.gguf");
  EXPECT_EQ(file.bytes(), bytes.size());
  EXPECT_EQ(file.keys().size(), 10u);
  EXPECT_EQ(file.text("general.name").value(), "sample");
  EXPECT_EQ(file.integer("a.count").value(), 7);
  EXPECT_EQ(file.integer("a.minus").value(), -3);
  EXPECT_EQ(file.integer("a.large").value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(file.number("a.base").value(), 10000.0);
  EXPECT_EQ(file.number("a.count").value(), 7.0);
  EXPECT_EQ(file.integer("a.flag").value(), 1);
  const Value* tokens = file.find("a.tokens");
  ASSERT_TRUE(tokens != nullptr && tokens->is_array);
  EXPECT_EQ(tokens->strings, (std::vector<std::string_view>{"", "one", "zwei"}));
  EXPECT_EQ(file.find("a.types")->integer(1), -2);
  EXPECT_EQ(file.find("a.sizes")->integer(1), 5);
  EXPECT_EQ(file.find("a.scores")->number(1), -1.5);
  EXPECT_EQ(file.find("a.scores")->integer(1), -1);
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST(GgufFile, TensorsAreWhereTheyWerePut) {
  const Bytes bytes = sample().to_bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  const File& file = **parsed;
  ASSERT_EQ(file.tensors().size(), 2u);
  const Tensor* first = file.tensor("first");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->rank, 1);
  EXPECT_EQ(first->values(), 5);
  std::vector<float> stored(5);
  std::memcpy(stored.data(), first->data, first->bytes);
  EXPECT_EQ(stored, (std::vector<float>{1, 2, 3, 4, 5}));
  const Tensor* second = file.tensor("second");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->format->name, "Q4_1");
  EXPECT_EQ(second->rank, 3);
  EXPECT_EQ(second->shape[0], 32);
  EXPECT_EQ(second->shape[2], 3);
  EXPECT_EQ(second->bytes, 6u * 20u);
  EXPECT_EQ((second->data - bytes.data()) % 32, 0);
  EXPECT_EQ(file.tensor("third"), nullptr);
}

TEST(GgufFile, OptionalValuesFallBackWhenMissingOrOfAnotherKind) {
  const Bytes bytes = sample().to_bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  const File& file = **parsed;
  EXPECT_EQ(file.integer_or("a.count", 1), 7);
  EXPECT_EQ(file.integer_or("nothing", 1), 1);
  EXPECT_EQ(file.integer_or("a.base", 1), 1);
  EXPECT_EQ(file.number_or("a.base", 2.0), 10000.0);
  EXPECT_EQ(file.number_or("general.name", 2.0), 2.0);
  EXPECT_EQ(file.text_or("general.name", "x"), "sample");
  EXPECT_EQ(file.text_or("a.tokens", "x"), "x");
}

TEST(GgufFile, MissingAndMistypedKeysAreNamedWithTheTypeThatWouldBeRight) {
  const Bytes bytes = sample().to_bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  const File& file = **parsed;
  EXPECT_EQ(file.integer("b").error().message, "m.gguf: key 'b' is missing (an integer)");
  EXPECT_EQ(file.integer("a.base").error().message, "m.gguf: key 'a.base' is of type f32, not an integer");
  EXPECT_EQ(file.text("a.count").error().message, "m.gguf: key 'a.count' is of type u32, not a string");
  EXPECT_EQ(file.number("a.scores").error().message,
            "m.gguf: key 'a.scores' is of type array of 2 f32, not a number");
}

TEST(GgufFile, AFileWithoutTensorsIsRead) {
  Writer writer;
  writer.add_text("general.name", "vocabulary only");
  EXPECT_EQ(message(writer.to_bytes()), "no error");
}

TEST(GgufFile, AnAlignmentOfTheFilesOwnIsKeptTo) {
  Writer writer = sample();
  writer.add_u32("general.alignment", 128);
  const Bytes bytes = writer.to_bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  for (const Tensor& tensor : (*parsed)->tensors()) EXPECT_EQ((tensor.data - bytes.data()) % 128, 0);
}

TEST(GgufFile, EveryTruncationIsRefusedWithTheReason) {
  const Bytes bytes = sample().to_bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  const Tensor* last = (*parsed)->tensor("second");
  const std::size_t end = static_cast<std::size_t>(last->data - bytes.data()) + last->bytes;
  for (std::size_t size = 0; size < end; ++size) {
    const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(message(part), "no error") << size;
  }
  const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end - 3));
  EXPECT_EQ(message(part),
            fmt::format("m.gguf: the file is truncated: its tensors end at byte {}, but it has {}, so 3 "
                        "bytes are missing",
                        end, end - 3));
}

TEST(GgufFile, ATruncatedHeaderOrKeyIsNamed) {
  EXPECT_EQ(message({}),
            "m.gguf: the file ends inside the header: 4 bytes should follow offset 0, but only 0 do (is it "
            "truncated?)");
  Bytes bytes = sample().to_bytes();
  const std::size_t name = position(bytes, "sample");
  // A string past the end: the length in front of "sample".
  EXPECT_EQ(
      message(patched_at(bytes, name - 8, std::uint64_t{1} << 63)),
      fmt::format(
          "m.gguf: the file ends inside key 'general.name': 9223372036854775808 bytes should follow offset "
          "{}, but only {} do (is it truncated?)",
          name, bytes.size() - name));
}

TEST(GgufFile, OtherFilesVersionsAndEndiannessAreRefusedByName) {
  const Bytes bytes = sample().to_bytes();
  EXPECT_EQ(message(renamed(bytes, "GGUF", "<htm")),
            "m.gguf: is not a GGUF file: it begins with '<htm', not 'GGUF'");
  for (const std::uint32_t version : {0u, 4u})
    EXPECT_EQ(message(patched_at(bytes, kVersionAt, version)),
              fmt::format("m.gguf: is GGUF version {}; versions 2 and 3 are read", version));
  EXPECT_EQ(message(patched_at(bytes, kVersionAt, 1u)),
            "m.gguf: is GGUF version 1, whose counts have 32 bits; versions 2 and 3 are read: convert the "
            "model again with a current converter");
  EXPECT_TRUE(message(patched_at(bytes, kVersionAt, 0x02000000u)).starts_with("m.gguf: is a big-endian "));
  EXPECT_EQ(message(patched_at(bytes, kVersionAt, 0x03000000u)),
            "m.gguf: is a big-endian GGUF file (its version, read as little endian, is 0x3000000); only "
            "little-endian "
            "files are read: convert it");
}

TEST(GgufFile, VersionTwoIsReadLikeVersionThree) {
  const Bytes bytes = patched_at(sample().to_bytes(), kVersionAt, 2u);
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ((*parsed)->version(), 2u);
  EXPECT_EQ((*parsed)->text("general.name").value(), "sample");
  EXPECT_EQ((*parsed)->tensor("second")->bytes, 6u * 20u);
}

class BadGguf : public ::testing::TestWithParam<testing::BadFile> {};

INSTANTIATE_TEST_SUITE_P(File, BadGguf, ::testing::ValuesIn(testing::bad_files()),
                         [](const auto& bad) { return bad.param.name; });

TEST_P(BadGguf, IsRefusedWithOneSentence) {
  const std::string said = message(GetParam().bytes);
  EXPECT_TRUE(said.starts_with("m.gguf: ")) << said;
  EXPECT_NE(said.find(GetParam().says), std::string::npos) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  EXPECT_LT(said.size(), 400u) << said;
}

TEST(GgufFile, CountsBeyondTheBytesPresentAreRefused) {
  const Bytes bytes = sample().to_bytes();
  for (const std::uint64_t count : {std::uint64_t{1} << 20, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    EXPECT_EQ(message(patched_at(bytes, kKeysAt, count)),
              fmt::format("m.gguf: the header claims {} keys, but the {} bytes after it can hold {} at most",
                          count, bytes.size() - 24, (bytes.size() - 24) / 14));
    EXPECT_TRUE(message(patched_at(bytes, kTensorsAt, count))
                    .starts_with(fmt::format("m.gguf: the header claims {} tensors, but the ", count)));
    // An array's count stands behind its key's type and its elements' type.
    EXPECT_TRUE(message(patched(bytes, "a.types", 8, count))
                    .starts_with(fmt::format("m.gguf: key 'a.types' claims {} elements at offset ", count)));
    EXPECT_TRUE(message(patched(bytes, "a.tokens", 8, count))
                    .starts_with(fmt::format("m.gguf: key 'a.tokens' claims {} elements at offset ", count)));
  }
}

TEST(GgufFile, UnknownAndNestedValueTypesAreRefused) {
  const Bytes bytes = sample().to_bytes();
  const std::size_t at = position(bytes, "a.types") + 7;
  EXPECT_EQ(message(patched_at(bytes, at, std::uint32_t{13})),
            fmt::format("m.gguf: key 'a.types' has the value type 13 at offset {}; 0 to 12 are known", at));
  EXPECT_EQ(
      message(patched_at(bytes, at + 4, std::uint32_t{9})),
      fmt::format(
          "m.gguf: key 'a.types' is an array of arrays at offset {}; arrays of numbers or strings are read",
          at + 4));
  EXPECT_EQ(
      message(patched_at(bytes, at + 4, std::uint32_t{99})),
      fmt::format("m.gguf: key 'a.types' is an array of elements of type 99 at offset {}; 0 to 12 are known",
                  at + 4));
}

TEST(GgufFile, ABooleanIsZeroOrOne) {
  EXPECT_EQ(message(patched(sample().to_bytes(), "a.flag", 4, std::uint8_t{2})),
            "m.gguf: key 'a.flag' has 2 for a boolean (element 0); 0 or 1 would be right");
}

TEST(GgufFile, NamesAppearOnceAndAreNotEmpty) {
  const Bytes bytes = sample().to_bytes();
  EXPECT_EQ(message(renamed(bytes, "a.types", "a.count")),
            "m.gguf: key 'a.count' appears twice; names must differ");
  Writer writer;
  writer.add_values("twin_a", format("F32"), {1}, std::vector<float>{1});
  writer.add_values("twin_b", format("F32"), {1}, std::vector<float>{1});
  EXPECT_EQ(message(renamed(writer.to_bytes(), "twin_b", "twin_a")),
            "m.gguf: tensor 'twin_a' appears twice; names must differ");
  EXPECT_EQ(message(patched_at(bytes, 24, std::uint64_t{0})),
            "m.gguf: key 1 of 10 at offset 24 has a name of 0 bytes; 1 to 65535 are allowed");
}

TEST(GgufFile, ANameOutOfTheFileIsMadeFitForAMessage) {
  const Bytes bytes =
      renamed(renamed(sample().to_bytes(), "a.count", "a\n\x1b[31m"), "a.minus", "a\n\x1b[31m");
  EXPECT_EQ(message(bytes), "m.gguf: key 'a\\x0a\\x1b[31m' appears twice; names must differ");
}

TEST(GgufFile, AlignmentIsAPowerOfTwoFromEight) {
  for (const std::uint32_t alignment : {0u, 1u, 4u, 24u, 33u, 1u << 21, ~0u}) {
    Writer writer = sample();
    writer.add_u32("general.alignment", alignment);
    EXPECT_EQ(
        message(writer.to_bytes()),
        fmt::format("m.gguf: key 'general.alignment' is {}; a power of two from 8 to 1048576 would be right",
                    alignment));
  }
  Writer writer = sample();
  writer.add_u64("general.alignment", 32);
  EXPECT_EQ(message(writer.to_bytes()), "m.gguf: key 'general.alignment' is of type u64, not u32");
}

TEST(GgufTensors, RankAndSizesAreChecked) {
  const Bytes bytes = sample().to_bytes();
  for (const std::uint32_t rank : {0u, 5u, ~0u})
    EXPECT_EQ(message(patched(bytes, "first", kRank, rank)),
              fmt::format("m.gguf: tensor 'first' has {} dimensions; 1 to 4 would be right", rank));
  EXPECT_EQ(message(patched(bytes, "first", kSize0, std::uint64_t{0})),
            "m.gguf: tensor 'first' has size 0 in dimension 0; at least 1 would be right");
  EXPECT_EQ(message(patched(bytes, "first", kSize0, ~std::uint64_t{0})),
            "m.gguf: tensor 'first' has more values than any file can hold: size 18446744073709551615 in "
            "dimension 0");
  // 2^32 * 2^31 * ... : each fits, the product does not.
  const Bytes large = patched(bytes, "second", kSize0, std::uint64_t{1} << 32);
  EXPECT_EQ(message(patched(large, "second", kSize0 + 8, std::uint64_t{1} << 31)),
            "m.gguf: tensor 'second' has more values than any file can hold: size 2147483648 in dimension 1");
  EXPECT_EQ(message(patched(bytes, "second", kSize0, std::uint64_t{33})),
            "m.gguf: tensor 'second' has rows of 33 values, but Q4_1 needs a multiple of 32");
}

TEST(GgufTensors, AnUnknownFormatIsNamedWithThoseSupported) {
  const Bytes bytes = sample().to_bytes();
  std::string names;
  for (const Format& format : formats()) names += (names.empty() ? "" : ", ") + std::string(format.name);
  EXPECT_TRUE(names.starts_with("F32, F16, Q4_0, "));
  EXPECT_EQ(
      message(patched(bytes, "first", 12, std::uint32_t{21})),
      "m.gguf: tensor 'first' is stored as type 21 (IQ3_S), which is not supported; supported are " + names);
  EXPECT_TRUE(message(patched(bytes, "first", 12, std::uint32_t{77}))
                  .starts_with("m.gguf: tensor 'first' is stored as type 77, which is not supported"));
}

TEST(GgufTensors, OffsetsAreAlignedAndInsideTheFile) {
  const Bytes bytes = sample().to_bytes();
  EXPECT_EQ(
      message(patched(bytes, "first", 16, std::uint64_t{8})),
      "m.gguf: tensor 'first' starts at offset 8 of the data, which is not a multiple of the alignment 32");
  EXPECT_EQ(message(patched(bytes, "first", 16, ~std::uint64_t{31})),
            "m.gguf: tensor 'first' starts at offset 18446744073709551584 of the data, beyond any file");
  EXPECT_TRUE(message(patched(bytes, "first", 16, std::uint64_t{1} << 40))
                  .starts_with("m.gguf: the file is truncated: its tensors end at byte "));
}

TEST(GgufTensors, OverlapIsRefused) {
  const Bytes bytes = sample().to_bytes();
  const auto parsed = parse(bytes);
  ASSERT_TRUE(parsed);
  const auto start = (*parsed)->tensor("first")->data - bytes.data();
  // "second" has three dimensions, so its offset stands 32 bytes behind its name.
  const std::string overlap = message(patched(bytes, "second", 32, std::uint64_t{0}));
  EXPECT_TRUE(overlap == fmt::format("m.gguf: tensors 'first' and 'second' overlap at byte {}", start) ||
              overlap == fmt::format("m.gguf: tensors 'second' and 'first' overlap at byte {}", start))
      << overlap;
}

TEST(GgufFile, NoSingleBrokenByteDoesHarm) {
  const Bytes bytes = sample().to_bytes();
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (const int flip : {0x01, 0x80, 0xff}) {
      Bytes broken = bytes;
      broken[at] ^= static_cast<std::byte>(flip);
      const auto file = parse(broken);  // an error or a file, never a crash: the sanitizers watch
      EXPECT_TRUE(file || file.error().message.starts_with("m.gguf: "));
    }
}

}  // namespace
}  // namespace coppice::core::gguf
