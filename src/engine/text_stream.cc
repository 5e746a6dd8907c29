#include "engine/text_stream.h"

#include <algorithm>

namespace coppice::core {
namespace {

constexpr std::size_t kRoom = 256;  // bytes of a token, so that decoding does not allocate

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops, bool show_special,
                       bool begins)
    : bytes_(tokenizer, show_special, begins), stops_(std::move(stops)) {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) longest = std::max(longest, stop.size());
  pending_.reserve(longest + kRoom);
}

bool TextStream::push(Token token, std::string& out) {
  pending_ += bytes_.next(token);
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, pending_.find(stop));
  if (first != std::string::npos) {
    pending_.resize(first);
    stopped_ = true;
    return true;
  }
  release(possible_stop(), out);
  return false;
}

void TextStream::finish(std::string& out) {
  release(pending_.size(), out);
  out += utf8_.finish();
}

void TextStream::release(std::size_t bytes, std::string& out) {
  utf8_.push(std::string_view(pending_).substr(0, bytes), out);
  pending_.erase(0, bytes);
}

std::size_t TextStream::possible_stop() const {
  // A stop string may begin in what is pending: hold back its longest suffix that is a prefix of one.
  std::size_t held = 0;
  for (const std::string& stop : stops_) {
    std::size_t longest = std::min(pending_.size(), stop.size() - 1);
    for (std::size_t n = longest; n > held; --n) {
      if (std::string_view(pending_).substr(pending_.size() - n) == std::string_view(stop).substr(0, n)) {
        held = n;
        break;
      }
    }
  }
  return pending_.size() - held;
}

}  // namespace coppice::core
