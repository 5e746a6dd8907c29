// Between the thread that makes an answer and the thread that sends it: bytes wait here, a bounded number of
// them, and the news that the reader is gone comes back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "http.h"
#include "http_text.h"

namespace coppice::serve {

// How the answer to one request is to be written.
struct AnswerManner {
  std::string id;                // of the request
  bool head_only = false;        // HEAD: everything but the body
  bool http11 = true;            // else a stream ends with the connection
  bool keep_alive = true;        // if the answer allows it
  std::size_t unsent_bytes = 0;  // of a stream, at most
};

class HttpChannel {
 public:
  // `wake` is called from any thread when there is something to pull.
  HttpChannel(AnswerManner manner, std::function<void()> wake)
      : manner_(std::move(manner)), wake_(std::move(wake)), keep_alive_(manner_.keep_alive) {}

  // What the handler is given.
  static std::shared_ptr<HttpReply> reply(std::shared_ptr<HttpChannel> channel);

  // The transport's side. pull() takes what is to be sent now and says whether that is the end.
  bool pull(std::string& bytes);
  void sent(std::size_t bytes);  // of what was pulled
  void lose();                   // the connection is lost: whoever makes the answer is told
  bool gone() const { return gone_.load(std::memory_order_relaxed); }
  bool keep_alive() const { return keep_alive_; }  // once the answer has ended
  int status() const { return status_; }           // 0: it has not begun

  // The handler's side, as HttpReply has it.
  void send(HttpHead head, const std::string& body);
  void begin(HttpHead head);
  bool write(std::string_view bytes);
  void end();
  void when_gone(std::function<void()> told);
  void drop();  // the reply is gone: if it had no end, it gets one

 private:
  std::string head(HttpHead head, Framing framing, std::size_t length);
  void wake_once(std::unique_lock<std::mutex> held);
  void give_up(std::unique_lock<std::mutex> held);

  const AnswerManner manner_;
  const std::function<void()> wake_;
  std::atomic<bool> gone_{false};
  std::atomic<std::size_t> in_flight_{0};  // bytes pulled and not yet sent
  std::atomic<bool> keep_alive_;
  std::atomic<int> status_{0};
  std::mutex mutex_;
  std::string outbox_;  // guarded by mutex_, and so are the next
  bool woken_ = false;  // a pull is to come
  bool chunked_ = false;
  bool ended_ = false;
  std::function<void()> told_;
};

}  // namespace coppice::serve
