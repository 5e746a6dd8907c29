#include "corpus/corpus_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr char kMagic[8] = {'C', 'O', 'P', 'C', 'O', 'R', 'P', '1'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kByteOrder = 0x01020304;
constexpr std::uint32_t kMostVocab = 1u << 24;
constexpr std::uint32_t kMostTopK = 1024;
constexpr std::uint32_t kMostFeatures = 64;
constexpr std::uint32_t kMostHidden = 1u << 17;

struct Header {
  char magic[8];
  std::uint32_t version, byte_order;
  std::uint64_t file_bytes, vocabulary_hash;
  std::uint32_t vocab, top_k, features, hidden, texts, zero;
  std::uint64_t table;  // offset: texts + 1 offsets, the last is where the records end
};
static_assert(sizeof(Header) == 64);

struct RecordHeader {
  std::uint64_t job;
  std::uint32_t tokens, start;
  float temperature;
  std::uint32_t kind, flags, zero;
};
static_assert(sizeof(RecordHeader) == 32);

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// Sizes of a record's parts. They fit 64 bits: tokens are below 2^32, K below 2^11, F * H below 2^23.
struct Parts {
  std::uint64_t ids, top, features;
  Parts(const CorpusShape& shape, std::uint64_t tokens, std::uint64_t start)
      : ids(padded(4 * tokens)),
        top(padded((tokens - start) * static_cast<std::uint64_t>(shape.top_k) * 6)),
        features(padded(tokens * static_cast<std::uint64_t>(shape.features) *
                        static_cast<std::uint64_t>(shape.hidden) * 2)) {}
  std::uint64_t all() const { return sizeof(RecordHeader) + ids + top + features; }
};

template <class T>
T read(std::span<const std::byte> bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

void append(std::vector<std::byte>& to, const void* from, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(from);
  to.insert(to.end(), begin, begin + bytes);
}

void pad(std::vector<std::byte>& to) { to.resize(padded(to.size())); }

// f16 log-probabilities order like their bits do, backwards: 0 and -0, then ever larger magnitudes.
std::uint16_t magnitude(std::uint16_t half) { return half & 0x7fff; }
bool is_logprob(std::uint16_t half) {
  return magnitude(half) <= 0x7c00 && (half >= 0x8000 || magnitude(half) == 0);
}

}  // namespace

std::span<const Token> CorpusRecordView::top_tokens(int position) const {
  COPPICE_CHECK(position >= start && position < static_cast<int>(ids.size()));
  const std::size_t at = static_cast<std::size_t>(position - start) * static_cast<std::size_t>(top_k) * 6;
  return {reinterpret_cast<const Token*>(top + at), static_cast<std::size_t>(top_k)};
}

std::span<const std::uint16_t> CorpusRecordView::top_logprobs(int position) const {
  const std::span<const Token> tokens = top_tokens(position);
  return {reinterpret_cast<const std::uint16_t*>(tokens.data() + tokens.size()), tokens.size()};
}

Result<CorpusShard> CorpusShard::open(const std::string& path) {
  COPPICE_TRY(MappedFile file, MappedFile::open(path));
  COPPICE_TRY(CorpusShard shard, parse(file.bytes(), path));
  shard.file_ = std::move(file);
  return shard;
}

Result<CorpusShard> CorpusShard::parse(std::span<const std::byte> bytes, std::string name) {
  CorpusShard shard;
  shard.bytes_ = bytes;
  shard.name_ = std::move(name);
  COPPICE_TRY_STATUS(shard.check());
  return shard;
}

Status CorpusShard::check() {
  if (bytes_.size() < sizeof(Header))
    return fail(fmt::format("{}: has {} bytes; a corpus shard has 64 or more", name_, bytes_.size()));
  const auto header = read<Header>(bytes_, 0);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    return fail(fmt::format("{}: is no corpus shard: it does not begin with COPCORP1", name_));
  if (header.version != kVersion || header.byte_order != kByteOrder)
    return fail(fmt::format("{}: is of version {} and byte order {:#x}; version {} and {:#x} are known",
                            name_, header.version, header.byte_order, kVersion, kByteOrder));
  if (header.file_bytes != bytes_.size())
    return fail(fmt::format("{}: has {} bytes and says it has {}; it is cut off or damaged", name_,
                            bytes_.size(), header.file_bytes));
  const bool shape = header.vocab >= 1 && header.vocab <= kMostVocab && header.top_k <= kMostTopK &&
                     header.top_k <= header.vocab && header.top_k % 2 == 0 &&
                     header.features <= kMostFeatures && header.hidden <= kMostHidden &&
                     (header.features == 0 || header.hidden >= 1) && header.zero == 0;
  if (!shape)
    return fail(fmt::format("{}: vocab {}, top_k {}, features {}, hidden {} cannot be", name_, header.vocab,
                            header.top_k, header.features, header.hidden));
  shape_ = {header.vocabulary_hash, static_cast<int>(header.vocab), static_cast<int>(header.top_k),
            static_cast<int>(header.features), static_cast<int>(header.hidden)};
  const std::uint64_t table_bytes = 8 * (std::uint64_t{header.texts} + 1);
  if (header.table % 8 != 0 || header.table < sizeof(Header) || table_bytes > bytes_.size() ||
      header.table != bytes_.size() - table_bytes)
    return fail(fmt::format("{}: its table of {} texts should end the file, but is at {}", name_,
                            header.texts, header.table));
  std::uint64_t at = sizeof(Header);
  records_.reserve(header.texts);
  for (std::uint32_t i = 0; i <= header.texts; ++i) {
    const auto offset = read<std::uint64_t>(bytes_, header.table + 8 * std::uint64_t{i});
    const bool last = i == header.texts;
    // A record is checked when it is known where the next begins.
    if (i == 0 ? offset != at : offset < at || offset > header.table || offset % 8 != 0)
      return fail(fmt::format("{}: text {} cannot be at {}", name_, i, offset));
    if (i > 0) {
      if (Status record = check_record(at, offset); !record)
        return fail(fmt::format("{}: text {} {}", name_, i - 1, record.error().message));
      records_.push_back(at);
    }
    at = offset;
    if (last && at != header.table)
      return fail(fmt::format("{}: texts end at {} and their table begins at {}", name_, at, header.table));
  }
  return {};
}

Status CorpusShard::check_record(std::uint64_t begin, std::uint64_t end) const {
  if (end - begin < sizeof(RecordHeader)) return fail("is too short");
  const auto header = read<RecordHeader>(bytes_, begin);
  if (header.start < 1 || header.start > header.tokens || header.tokens > 0x7fffffff)
    return fail(fmt::format("has {} tokens of which those from {} on are generated; that cannot be",
                            header.tokens, header.start));
  if (!std::isfinite(header.temperature) || header.temperature < 0 || header.kind > 0xffff ||
      header.zero != 0)
    return fail(
        fmt::format("has temperature {} and kind {}; that cannot be", header.temperature, header.kind));
  const Parts parts(shape_, header.tokens, header.start);
  if (end - begin != parts.all())
    return fail(fmt::format("has {} tokens, which need {} bytes, but has {}", header.tokens, parts.all(),
                            end - begin));
  const auto good = [this](Token token) { return token >= 0 && token < shape_.vocab; };
  std::uint64_t at = begin + sizeof(RecordHeader);
  for (std::uint32_t i = 0; i < header.tokens; ++i)
    if (const auto token = read<Token>(bytes_, at + 4 * std::uint64_t{i}); !good(token))
      return fail(
          fmt::format("has the token id {}; ids of its vocabulary are 0 to {}", token, shape_.vocab - 1));
  at += parts.ids;
  const auto k = static_cast<std::uint64_t>(shape_.top_k);
  for (std::uint32_t i = header.start; i < header.tokens; ++i, at += 6 * k) {
    std::uint16_t before = 0;
    for (std::uint64_t j = 0; j < k; ++j) {
      const auto token = read<Token>(bytes_, at + 4 * j);
      const auto logprob = read<std::uint16_t>(bytes_, at + 4 * k + 2 * j);
      if (!good(token) || !is_logprob(logprob) || magnitude(logprob) < before)
        return fail(
            fmt::format("says of its token {} what cannot be: number {} is token {} with the f16 bits "
                        "{:#06x}, but log-probabilities are at most 0 and fall",
                        i, j, token, logprob));
      before = magnitude(logprob);
    }
  }
  return {};
}

CorpusRecordView CorpusShard::text(int index) const {
  COPPICE_CHECK(index >= 0 && index < texts());
  const std::uint64_t begin = records_[static_cast<std::size_t>(index)];
  const auto header = read<RecordHeader>(bytes_, begin);
  const Parts parts(shape_, header.tokens, header.start);
  const std::byte* at = bytes_.data() + begin + sizeof(RecordHeader);
  CorpusRecordView view;
  view.job = header.job;
  view.start = static_cast<int>(header.start);
  view.temperature = header.temperature;
  view.kind = static_cast<int>(header.kind);
  view.flags = header.flags;
  view.ids = {reinterpret_cast<const Token*>(at), header.tokens};
  view.top = at + parts.ids;
  view.top_k = shape_.top_k;
  const auto features = static_cast<std::size_t>(shape_.features) * static_cast<std::size_t>(shape_.hidden);
  view.features = {reinterpret_cast<const std::uint16_t*>(at + parts.ids + parts.top),
                   header.tokens * features};
  return view;
}

CorpusShardWriter::CorpusShardWriter(const CorpusShape& shape) : shape_(shape) {
  COPPICE_CHECK(shape.vocab >= 1 && shape.top_k >= 0 && shape.top_k % 2 == 0 && shape.top_k <= shape.vocab);
  COPPICE_CHECK(shape.features >= 0 && (shape.features == 0 || shape.hidden >= 1));
}

void CorpusShardWriter::add(const CorpusRecord& text) {
  const std::size_t tokens = text.ids.size(), start = static_cast<std::size_t>(text.start);
  const auto k = static_cast<std::size_t>(shape_.top_k);
  COPPICE_CHECK(text.start >= 1 && start <= tokens);
  COPPICE_CHECK(text.top_tokens.size() == (tokens - start) * k);
  COPPICE_CHECK(text.top_logprobs.size() == (tokens - start) * k);
  COPPICE_CHECK(text.features.size() ==
                tokens * static_cast<std::size_t>(shape_.features) * static_cast<std::size_t>(shape_.hidden));
  records_.push_back(sizeof(Header) + body_.size());
  const RecordHeader header{text.job,
                            static_cast<std::uint32_t>(tokens),
                            static_cast<std::uint32_t>(start),
                            text.temperature,
                            static_cast<std::uint32_t>(text.kind),
                            text.flags,
                            0};
  append(body_, &header, sizeof header);
  append(body_, text.ids.data(), 4 * tokens);
  pad(body_);
  for (std::size_t i = 0; i < tokens - start && k > 0; ++i) {
    append(body_, text.top_tokens.data() + i * k, 4 * k);
    append(body_, text.top_logprobs.data() + i * k, 2 * k);
  }
  pad(body_);
  append(body_, text.features.data(), 2 * text.features.size());
  pad(body_);
}

std::size_t CorpusShardWriter::bytes() const {
  return sizeof(Header) + body_.size() + 8 * (records_.size() + 1);
}

std::vector<std::byte> CorpusShardWriter::header() const {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.byte_order = kByteOrder;
  header.file_bytes = bytes();
  header.vocabulary_hash = shape_.vocabulary_hash;
  header.vocab = static_cast<std::uint32_t>(shape_.vocab);
  header.top_k = static_cast<std::uint32_t>(shape_.top_k);
  header.features = static_cast<std::uint32_t>(shape_.features);
  header.hidden = static_cast<std::uint32_t>(shape_.hidden);
  header.texts = static_cast<std::uint32_t>(records_.size());
  header.table = sizeof(Header) + body_.size();
  std::vector<std::byte> out;
  append(out, &header, sizeof header);
  return out;
}

std::vector<std::byte> CorpusShardWriter::table() const {
  std::vector<std::byte> out;
  append(out, records_.data(), 8 * records_.size());
  const std::uint64_t end = sizeof(Header) + body_.size();
  append(out, &end, sizeof end);
  return out;
}

std::vector<std::byte> CorpusShardWriter::to_bytes() const {
  std::vector<std::byte> out = header();
  append(out, body_.data(), body_.size());
  const std::vector<std::byte> offsets = table();
  append(out, offsets.data(), offsets.size());
  return out;
}

Status CorpusShardWriter::write(const std::string& path) const {
  return write_file(path, [this](const Append& to) -> Status {
    COPPICE_TRY_STATUS(to(header()));
    COPPICE_TRY_STATUS(to(body_));
    return to(table());
  });
}

void CorpusShardWriter::clear() {
  body_.clear();
  records_.clear();
}

}  // namespace coppice::core
