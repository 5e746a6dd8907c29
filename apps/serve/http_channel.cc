#include "http_channel.h"

#include <algorithm>
#include <ctime>
#include <utility>

namespace coppice::serve {
namespace {

class ChannelReply final : public HttpReply {
 public:
  explicit ChannelReply(std::shared_ptr<HttpChannel> channel) : channel_(std::move(channel)) {}
  ChannelReply(const ChannelReply&) = delete;
  ChannelReply& operator=(const ChannelReply&) = delete;
  ~ChannelReply() override { channel_->drop(); }
  void send(HttpHead head, std::string body) override { channel_->send(std::move(head), body); }
  void begin(HttpHead head) override { channel_->begin(std::move(head)); }
  bool write(std::string_view bytes) override { return channel_->write(bytes); }
  void end() override { channel_->end(); }
  bool gone() const override { return channel_->gone(); }
  void when_gone(std::function<void()> told) override { channel_->when_gone(std::move(told)); }

 private:
  std::shared_ptr<HttpChannel> channel_;
};

}  // namespace

std::shared_ptr<HttpReply> HttpChannel::reply(std::shared_ptr<HttpChannel> channel) {
  return std::make_shared<ChannelReply>(std::move(channel));
}

bool HttpChannel::pull(std::string& bytes) {
  const std::lock_guard<std::mutex> held(mutex_);
  woken_ = false;
  bytes.swap(outbox_);
  outbox_.clear();
  in_flight_ = bytes.size();
  return ended_;
}

void HttpChannel::sent(std::size_t bytes) { in_flight_ -= bytes; }

void HttpChannel::lose() {
  gone_ = true;
  std::function<void()> told;
  {
    const std::lock_guard<std::mutex> held(mutex_);
    outbox_.clear();
    if (!ended_) told = std::move(told_);
    told_ = nullptr;
  }
  if (told) told();
}

std::string HttpChannel::head(HttpHead head, Framing framing, std::size_t length) {
  status_ = head.status;
  bool keep = manner_.keep_alive && framing != Framing::until_close;
  for (const auto& [name, value] : head.fields) keep = keep && !(name == "Connection" && value == "close");
  keep_alive_ = keep;
  std::erase_if(head.fields, [](const auto& field) { return field.first == "Connection"; });
  if (!keep) {
    head.fields.emplace_back("Connection", "close");
  } else if (!manner_.http11) {
    head.fields.emplace_back("Connection", "keep-alive");
  }
  head.fields.emplace_back("Date", http_date(std::time(nullptr)));
  head.fields.emplace_back("X-Request-Id", manner_.id);
  return head_text(head, framing, length);
}

void HttpChannel::wake_once(std::unique_lock<std::mutex> held) {
  const bool wake = !std::exchange(woken_, true);
  held.unlock();
  if (wake) wake_();
}

void HttpChannel::send(HttpHead answer, const std::string& body) {
  std::unique_lock<std::mutex> held(mutex_);
  if (gone() || ended_ || status_ != 0) return;
  outbox_ += head(std::move(answer), Framing::length, body.size());
  if (!manner_.head_only) outbox_ += body;
  ended_ = true;
  told_ = nullptr;
  wake_once(std::move(held));
}

void HttpChannel::begin(HttpHead answer) {
  std::unique_lock<std::mutex> held(mutex_);
  if (gone() || ended_ || status_ != 0) return;
  chunked_ = manner_.http11;
  outbox_ += head(std::move(answer), chunked_ ? Framing::chunked : Framing::until_close, 0);
  wake_once(std::move(held));
}

bool HttpChannel::write(std::string_view bytes) {
  if (gone()) return false;
  if (bytes.empty() || manner_.head_only) return true;
  std::unique_lock<std::mutex> held(mutex_);
  if (ended_ || status_ == 0) return false;
  if (chunked_) {
    append_chunk(outbox_, bytes);
  } else {
    outbox_ += bytes;
  }
  if (outbox_.size() + in_flight_ > manner_.unsent_bytes) {
    give_up(std::move(held));
    return false;
  }
  wake_once(std::move(held));
  return true;
}

// The transport hears of it now, not when it pulls the next time: it may wait for the reader until then.
void HttpChannel::give_up(std::unique_lock<std::mutex> held) {
  gone_ = true;
  held.unlock();
  wake_();
}

void HttpChannel::end() {
  std::unique_lock<std::mutex> held(mutex_);
  if (gone() || ended_ || status_ == 0) return;
  if (chunked_ && !manner_.head_only) outbox_ += kLastChunk;
  ended_ = true;
  told_ = nullptr;
  wake_once(std::move(held));
}

void HttpChannel::when_gone(std::function<void()> told) {
  {
    const std::lock_guard<std::mutex> held(mutex_);
    if (ended_) return;
    if (!gone()) {
      told_ = std::move(told);
      return;
    }
  }
  told();
}

void HttpChannel::drop() {
  if (status_ == 0) {
    send({500, "", {{"Connection", "close"}}}, "");
    return;
  }
  std::unique_lock<std::mutex> held(mutex_);
  told_ = nullptr;
  if (ended_ || gone()) return;
  give_up(std::move(held));  // cut off: the client must not take it for whole
}

}  // namespace coppice::serve
