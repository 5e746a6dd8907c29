#include "api/importance.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/os.h"
#include "gguf/file.h"

namespace coppice {

// Fills a matrix from either format.
class ImportanceReader {
 public:
  ImportanceReader(std::span<const std::byte> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  Result<ImportanceMatrix> run() {
    const bool gguf = bytes_.size() >= 4 && std::memcmp(bytes_.data(), "GGUF", 4) == 0;
    COPPICE_TRY_STATUS(gguf ? read_gguf() : read_older());
    if (matrix_.means_.empty()) return wrong("holds no importance of any tensor");
    return std::move(matrix_);
  }

 private:
  template <class... Arguments>
  tl::unexpected<Error> wrong(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    return fail(name_ + ": " + fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  // What a message shows of a name out of the file.
  static std::string shown(std::string_view name) {
    std::string out;
    for (const char c : name.substr(0, 80)) out += c >= 0x20 && c < 0x7f ? c : '?';
    return out;
  }

  Status keep(std::string_view tensor, std::vector<float> means) {
    for (const float mean : means)
      if (!(mean >= 0) || !std::isfinite(mean))
        return wrong("{}: an importance is {}; finite and at least 0 would be right", shown(tensor), mean);
    if (!matrix_.means_.emplace(std::string(tensor), std::move(means)).second)
      return wrong("{} appears twice; names must differ", shown(tensor));
    return {};
  }

  Status read_gguf();
  Status read_entry(const core::gguf::File& file, const core::gguf::Tensor& sums);
  Status read_older();

  // The next value of the older format.
  template <class T>
  Result<T> next(std::string_view what) {
    if (bytes_.size() - at_ < sizeof(T))
      return wrong("ends inside {} at byte {}: is it cut off, or no importance matrix?", what, at_);
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  // A count whose items, of `size` bytes at least, must fit in what is left.
  Result<std::size_t> next_count(std::string_view what, std::size_t size) {
    COPPICE_TRY(const auto count, next<std::int32_t>(what));
    const std::size_t left = bytes_.size() - at_;
    if (count < 1 || static_cast<std::size_t>(count) > left / size)
      return wrong("has {} for {} at byte {}, and {} bytes follow: is it cut off, or no importance matrix?",
                   count, what, at_ - 4, left);
    return static_cast<std::size_t>(count);
  }

  std::span<const std::byte> bytes_;
  std::string name_;
  std::size_t at_ = 0;
  ImportanceMatrix matrix_;
};

Status ImportanceReader::read_gguf() {
  COPPICE_TRY(const auto file, core::gguf::File::parse(bytes_, name_));
  for (const core::gguf::Tensor& tensor : file->tensors())
    if (tensor.name.ends_with(".in_sum2")) COPPICE_TRY_STATUS(read_entry(*file, tensor));
  return {};
}

Status ImportanceReader::read_entry(const core::gguf::File& file, const core::gguf::Tensor& sums) {
  const std::string_view tensor = sums.name.substr(0, sums.name.size() - std::strlen(".in_sum2"));
  const core::gguf::Tensor* counts = file.tensor(std::string(tensor) + ".counts");
  if (counts == nullptr) return wrong("{} has sums but no counts", shown(tensor));
  const std::int64_t matrices = counts->values();
  if (sums.format->name != "F32" || counts->format->name != "F32" || sums.values() % matrices != 0)
    return wrong("{} must have f32 sums, as many for each of its f32 counts", shown(tensor));
  std::vector<float> means(static_cast<std::size_t>(sums.values()));
  std::vector<float> of(static_cast<std::size_t>(matrices));
  sums.format->unpack(sums.data, means.data(), sums.values());
  counts->format->unpack(counts->data, of.data(), matrices);
  const std::size_t inputs = means.size() / of.size();
  for (std::size_t i = 0; i < means.size(); ++i) {
    const float count = of[i / inputs];
    means[i] = count > 0 ? means[i] / count : 1;
  }
  return keep(tensor, std::move(means));
}

Status ImportanceReader::read_older() {
  COPPICE_TRY(const std::size_t entries, next_count("the number of entries", 4 + 1 + 4 + 4 + 4));
  for (std::size_t i = 0; i < entries; ++i) {
    COPPICE_TRY(const std::size_t length, next_count("the length of a name", 1));
    const std::string tensor(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    COPPICE_TRY(const auto calls, next<std::int32_t>("the number of calls"));
    COPPICE_TRY(const std::size_t values, next_count("the number of values", sizeof(float)));
    std::vector<float> means(values);
    std::memcpy(means.data(), bytes_.data() + at_, sizeof(float) * values);
    at_ += sizeof(float) * values;
    if (calls > 0)
      for (float& mean : means) mean /= static_cast<float>(calls);
    COPPICE_TRY_STATUS(keep(tensor, std::move(means)));
  }
  return {};
}

Result<ImportanceMatrix> ImportanceMatrix::read(const std::string& path) {
  COPPICE_TRY(const core::MappedFile file, core::MappedFile::open(path));
  return parse(file.bytes(), path);
}

Result<ImportanceMatrix> ImportanceMatrix::parse(std::span<const std::byte> bytes, const std::string& name) {
  return ImportanceReader(bytes, name).run();
}

const std::vector<float>* ImportanceMatrix::find(std::string_view tensor) const {
  const auto found = means_.find(tensor);
  return found == means_.end() ? nullptr : &found->second;
}

}  // namespace coppice
