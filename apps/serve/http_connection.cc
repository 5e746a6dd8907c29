#include "http_connection.h"

#include <fmt/core.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

namespace coppice::serve {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kReadBytes = 16 << 10;
// Read and thrown away behind the last request, so that the client gets to read our answer.
constexpr std::size_t kUnheardBytes = 64 << 20;
constexpr double kLingerSeconds = 2;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

template <class View>
std::string text(const View& view) {
  return std::string(view.data(), view.size());
}

// Those before a request are no part of it (RFC 9112, 2.2).
void drop_empty_lines(std::string& input) {
  std::size_t end = 0;
  while (input.compare(end, 2, "\r\n") == 0) end += 2;
  input.erase(0, end);
}

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string address(const net::ip::tcp::socket& socket) {
  boost::system::error_code ignored;
  const auto peer = socket.remote_endpoint(ignored);
  const bool v6 = peer.address().is_v6();
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", peer.address().to_string(), v6 ? "]" : "", peer.port());
}

}  // namespace

HttpConnection::HttpConnection(HttpCore& core, net::ip::tcp::socket socket)
    : core_(core),
      socket_(std::move(socket)),
      timer_(core.io),
      peer_(address(socket_)),
      chunk_(kReadBytes, '\0') {}

void HttpConnection::start() {
  Code ignored;
  socket_.set_option(net::ip::tcp::no_delay(true), ignored);
  allow(core_.limits.head_seconds);
  read();
}

void HttpConnection::close_if_idle() {
  if (state_ == State::idle) close();
}

// Always one read is on its way: it is how we hear that the client has left.
void HttpConnection::read() {
  socket_.async_read_some(net::buffer(chunk_), [self = shared_from_this()](Code error, std::size_t bytes) {
    self->received(error, bytes);
  });
}

void HttpConnection::received(Code error, std::size_t bytes) {
  if (state_ == State::closed) return;
  if (error) return lose();
  if (deaf_) {
    unheard_ += bytes;
    if (unheard_ > kUnheardBytes) return lose();
    return read();
  }
  input_.append(chunk_, 0, bytes);
  if (state_ != State::busy) {
    parse();
  } else if (input_.size() > core_.limits.early_bytes) {
    return lose();
  }
  if (state_ != State::closed) read();
}

void HttpConnection::begin_request() {
  state_ = State::head;
  head_seen_ = false;
  began_ = Clock::now();
  outcome_ = {};
  outcome_.peer = peer_;
  outcome_.id = new_request_id();
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(static_cast<std::uint32_t>(core_.limits.head_bytes));
  parser_->body_limit(core_.limits.body_bytes);
  allow(core_.limits.head_seconds);
}

void HttpConnection::parse() {
  while (!input_.empty() && (state_ == State::idle || state_ == State::head || state_ == State::body)) {
    if (state_ == State::idle) {
      drop_empty_lines(input_);
      if (input_.empty() || input_ == "\r") return;
      begin_request();
    }
    Code error;
    const std::size_t used = parser_->put(net::buffer(input_), error);
    input_.erase(0, used);
    if (error && error != http::error::need_more) {
      if (error == http::error::header_limit)
        return refuse(431, fmt::format("the request's line and fields are longer than {} bytes",
                                       core_.limits.head_bytes));
      if (error == http::error::body_limit || error == http::error::buffer_overflow)
        return refuse(413, fmt::format("the body is longer than {} bytes", core_.limits.body_bytes));
      if (error == http::error::bad_version && asks_for_another_version(input_))
        return refuse(505, "HTTP/1.1 and HTTP/1.0 are spoken here");
      if (error == http::error::bad_version)
        return refuse(400, "this is no HTTP request: its first line must end in HTTP/1.1 and CRLF");
      return refuse(400, fmt::format("this is no HTTP request: {}", error.message()));
    }
    if (!head_seen_ && parser_->is_header_done() && !check_head()) return;
    if (parser_->is_done()) return hand_over();
    if (error || used == 0) return;  // more has to come
  }
}

// Of a request whose fields are there, before its body is waited for.
bool HttpConnection::check_head() {
  head_seen_ = true;
  const auto& head = parser_->get();
  outcome_.method = text(head.method_string());
  std::string query;
  const bool target = split_target(text(head.target()), outcome_.path, query) || text(head.target()) == "*";
  int fields = 0, hosts = 0;
  std::string expected;
  for (const auto& field : head) {
    ++fields;
    hosts += field.name() == http::field::host ? 1 : 0;
    if (field.name() == http::field::expect) expected = lower_case(text(field.value()));
    if (lower_case(text(field.name_string())) == "x-request-id" && is_request_id(text(field.value())))
      outcome_.id = text(field.value());
  }
  const auto refused = [this](int status, const std::string& message) {
    refuse(status, message);
    return false;
  };
  if (fields > core_.limits.head_fields)
    return refused(431, fmt::format("the request has more than {} fields", core_.limits.head_fields));
  if (!target) return refused(400, "the request's target is no path that begins with /");
  if (hosts > 1 || (hosts == 0 && head.version() == 11)) return refused(400, "one Host field is wanted");
  const auto codings = head.count(http::field::transfer_encoding);
  if (codings > 1 || (codings == 1 && lower_case(text(head[http::field::transfer_encoding])) != "chunked"))
    return refused(501, "Transfer-Encoding: only chunked is understood");
  const std::string coded = lower_case(text(head[http::field::content_encoding]));
  if (!coded.empty() && coded != "identity")
    return refused(415, "Content-Encoding: a body is wanted as it is");
  if (head.method() == http::verb::post && !parser_->chunked() && !parser_->content_length())
    return refused(411, "Content-Length is wanted, or Transfer-Encoding: chunked");
  if (!expected.empty() && expected != "100-continue")
    return refused(417, "Expect: only 100-continue can be expected here");
  if (parser_->is_done()) return true;
  state_ = State::body;
  allow(core_.limits.body_seconds);
  if (!expected.empty() && head.version() == 11) go_on();
  return true;
}

// The client waits for this before it sends the body.
void HttpConnection::go_on() {
  output_ = kContinue;
  output_sent_ = 0;
  last_ = pulled_ = false;
  send_some();
}

void HttpConnection::hand_over() {
  HttpRequest request;
  const auto& message = parser_->get();
  AnswerManner manner;
  manner.id = request.id = outcome_.id;
  manner.head_only = message.method() == http::verb::head;
  manner.http11 = message.version() == 11;
  manner.keep_alive = parser_->keep_alive() && !core_.closing;
  request.method = outcome_.method;
  split_target(text(message.target()), request.path, request.query);
  if (request.path.empty()) request.path = "*";
  for (const auto& field : message)
    request.fields.emplace_back(lower_case(text(field.name_string())), text(field.value()));
  // First of its name: where the target has a host, the field Host does not count (RFC 9112, 3.2.2).
  if (const std::string target = text(message.target()); !authority_of(target).empty())
    request.fields.emplace(request.fields.begin(), "host", authority_of(target));
  request.body = std::move(parser_->get().body());
  request.peer = peer_;
  request.arrived = seconds(Clock::now().time_since_epoch());
  parser_.reset();
  open_channel(manner);
  const auto reply = HttpChannel::reply(channel_);
  try {
    core_.hooks.handle(std::move(request), reply);
  } catch (const std::exception&) {
    reply->send({500, "application/json", {}},
                core_.hooks.wrong(500, "the server failed on this request; this is a bug of ours"));
  }
}

// What is no request, or not one that can be read to its end: the answer, and no request after it.
void HttpConnection::refuse(int status, const std::string& message) {
  AnswerManner manner;
  manner.id = outcome_.id;
  manner.keep_alive = false;
  parser_.reset();
  input_.clear();
  deaf_ = true;
  open_channel(manner);
  HttpChannel::reply(channel_)->send({status, "application/json", {}}, core_.hooks.wrong(status, message));
}

void HttpConnection::open_channel(const AnswerManner& given) {
  AnswerManner manner = given;
  manner.unsent_bytes = core_.limits.unsent_bytes;
  state_ = State::busy;
  allow_for_ever();
  channel_ = std::make_shared<HttpChannel>(std::move(manner), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    net::post(self->core_.io, [weak] {
      if (const auto there = weak.lock()) there->flush();
    });
  });
}

void HttpConnection::flush() {
  if (state_ != State::busy || !channel_) return;
  if (channel_->gone()) return lose();
  if (sending_) return;
  last_ = channel_->pull(output_);
  pulled_ = true;
  output_sent_ = 0;
  if (!output_.empty()) return send_some();
  if (last_) answered();
}

void HttpConnection::send_some() {
  sending_ = true;
  if (state_ == State::busy) allow(core_.limits.send_seconds);
  const auto rest = net::buffer(output_.data() + output_sent_, output_.size() - output_sent_);
  socket_.async_write_some(
      rest, [self = shared_from_this()](Code error, std::size_t bytes) { self->was_sent(error, bytes); });
}

void HttpConnection::was_sent(Code error, std::size_t bytes) {
  sending_ = false;
  if (state_ == State::closed) return;
  if (error) return lose();
  output_sent_ += bytes;
  outcome_.bytes += bytes;
  if (channel_ && pulled_) channel_->sent(bytes);
  if (output_sent_ < output_.size()) return send_some();
  output_.clear();
  output_sent_ = 0;
  if (state_ != State::busy) return;
  allow_for_ever();
  if (last_) return answered();
  flush();
}

void HttpConnection::answered() {
  report(false);
  const bool keep = channel_->keep_alive() && !core_.closing;
  channel_.reset();
  last_ = false;
  if (!keep) return linger();
  state_ = State::idle;
  allow(core_.limits.idle_seconds);
  parse();  // what came early
}

// A socket closed with unread bytes in it would take our answer along.
void HttpConnection::linger() {
  Code ignored;
  state_ = State::lingering;
  deaf_ = true;
  input_.clear();
  allow(kLingerSeconds);
  socket_.shutdown(net::ip::tcp::socket::shutdown_send, ignored);
}

void HttpConnection::lose() {
  if (state_ == State::closed) return;
  const auto channel = std::move(channel_);
  if (state_ == State::head || state_ == State::body || state_ == State::busy) {
    if (channel) outcome_.status = channel->status();
    report(true);
  }
  close();
  if (channel) channel->lose();
}

void HttpConnection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  Code ignored;
  timer_.cancel(ignored);
  socket_.close(ignored);
  --core_.connections;
  core_.open.erase(shared_from_this());
}

void HttpConnection::report(bool lost) {
  if (channel_) outcome_.status = channel_->status();
  outcome_.lost = lost;
  outcome_.seconds = seconds(Clock::now() - began_);
  core_.hooks.finished(outcome_);
}

void HttpConnection::allow(double time) {
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time));
  // One that waits already wakes no later than this, except where it waits for what is further away.
  if (waiting_ && timer_.expiry() <= deadline_) return;
  wait();
}

void HttpConnection::allow_for_ever() { deadline_ = Clock::time_point::max(); }

void HttpConnection::wait() {
  waiting_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](Code error) {
    if (error || self->state_ == State::closed) return;
    self->waiting_ = false;
    if (self->deadline_ == Clock::time_point::max()) return;
    if (Clock::now() < self->deadline_) return self->wait();
    self->too_late();
  });
}

void HttpConnection::too_late() {
  switch (state_) {
    case State::head:
      return refuse(
          408, fmt::format("the request's fields took longer than {} seconds", core_.limits.head_seconds));
    case State::body:
      return refuse(408, fmt::format("the body took longer than {} seconds", core_.limits.body_seconds));
    case State::busy:
      return lose();
    default:
      return close();
  }
}

}  // namespace coppice::serve
