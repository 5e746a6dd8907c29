// One connection: reads a request, hands it over, and while the answer is made goes on reading, so that it
// hears when the client leaves. All on the transport's thread. Only http_server.cc sees this.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "http_channel.h"
#include "http_server.h"

namespace coppice::serve {

namespace net = boost::asio;

class HttpConnection;

// What connections share.
struct HttpCore {
  HttpLimits limits;
  HttpHooks hooks;
  net::io_context io{1};
  std::atomic<int> connections{0};
  bool closing = false;  // no request after the one in work
  std::unordered_set<std::shared_ptr<HttpConnection>> open;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpCore& core, net::ip::tcp::socket socket);
  void start();
  void close_if_idle();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Clock = std::chrono::steady_clock;
  using Code = boost::system::error_code;
  enum class State { idle, head, body, busy, lingering, closed };

  void read();
  void received(Code error, std::size_t bytes);
  void parse();
  void begin_request();
  bool check_head();  // false: refused
  void go_on();
  void hand_over();
  void refuse(int status, const std::string& message);
  void open_channel(const AnswerManner& manner);
  void flush();
  void send_some();
  void was_sent(Code error, std::size_t bytes);
  void answered();
  void linger();
  void lose();  // the client is gone, or given up
  void close();
  void report(bool lost);
  void allow(double seconds);  // until something must have happened
  void allow_for_ever();
  void wait();
  void too_late();

  HttpCore& core_;
  net::ip::tcp::socket socket_;
  net::steady_timer timer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool waiting_ = false;  // for the timer
  State state_ = State::idle;
  std::string peer_;
  std::string chunk_;  // where the socket writes what it reads
  std::string input_;  // read and not yet parsed
  std::optional<Parser> parser_;
  bool head_seen_ = false;
  std::shared_ptr<HttpChannel> channel_;  // of the request in work
  std::string output_;                    // being sent
  std::size_t output_sent_ = 0;
  bool sending_ = false;
  bool pulled_ = false;  // what is being sent is the channel's, not our 100 Continue
  bool last_ = false;    // the answer ends with it
  bool deaf_ = false;    // nothing that comes now is read as a request
  std::size_t unheard_ = 0;
  HttpOutcome outcome_;
  Clock::time_point began_;  // the request's first byte
};

}  // namespace coppice::serve
