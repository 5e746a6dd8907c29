#include "http_server.h"

#include <fmt/core.h>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>
#include <vector>

#include "http_connection.h"

namespace coppice::serve {
namespace {

using net::ip::tcp;
using Code = boost::system::error_code;

constexpr auto kOutOfSockets = std::chrono::milliseconds(100);  // until accepting is tried again

std::chrono::steady_clock::duration duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

Result<net::ip::address> address_of(const std::string& host) {
  Code error;
  const auto address = net::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error)
    return fail(fmt::format("--host {}: an IP address is wanted, 127.0.0.1 or 0.0.0.0 for example", host));
  return address;
}

const char* what_would_do(const Code& error) {
  if (error == net::error::address_in_use) return "; another --port may be free (0: any that is)";
  if (error.value() == EADDRNOTAVAIL) return "; --host wants an address of this machine";
  return "";
}

struct Ticker {
  net::steady_timer timer;
  double seconds;
  std::function<void()> call;
  void wait() {
    timer.expires_after(duration(seconds));
    timer.async_wait([this](Code error) {
      if (error) return;
      call();
      wait();
    });
  }
};

}  // namespace

struct HttpServer::Impl {
  HttpCore core;
  tcp::acceptor acceptor{core.io};
  net::steady_timer pause{core.io};
  net::signal_set signals{core.io};
  std::function<void()> on_signal;
  std::vector<std::unique_ptr<Ticker>> tickers;

  ~Impl() {
    const auto open = std::move(core.open);  // their destructors want core
  }

  Status listen(const HttpOptions& options) {
    const auto address = address_of(options.host);
    if (!address) return tl::unexpected(address.error());
    Code error;
    const tcp::endpoint endpoint(*address, static_cast<unsigned short>(options.port));
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (error)
      return fail(fmt::format("cannot listen on {} port {}: {}{}", options.host, options.port,
                              error.message(), what_would_do(error)));
    accept();
    return {};
  }

  void accept() {
    acceptor.async_accept([this](Code error, tcp::socket socket) {
      if (error == net::error::operation_aborted || !acceptor.is_open()) return;
      if (error) {  // out of file descriptors, most likely
        pause.expires_after(kOutOfSockets);
        pause.async_wait([this](Code stopped) {
          if (!stopped) accept();
        });
        return;
      }
      welcome(std::move(socket));
      accept();
    });
  }

  void welcome(tcp::socket socket) {
    if (core.connections >= core.limits.connections) return turn_away(std::move(socket));
    ++core.connections;
    auto connection = std::make_shared<HttpConnection>(core, std::move(socket));
    core.open.insert(connection);
    connection->start();
  }

  // One try: who does not read it at once hears nothing.
  void turn_away(tcp::socket socket) {
    Code ignored;
    const std::string body = core.hooks.wrong(503, "too many connections at once; try again later");
    HttpHead head{503, "application/json", {{"Retry-After", "1"}, {"Connection", "close"}}};
    const std::string answer = head_text(head, Framing::length, body.size()) + body;
    socket.non_blocking(true, ignored);
    socket.write_some(net::buffer(answer), ignored);
    socket.shutdown(tcp::socket::shutdown_both, ignored);
  }

  void wait_for_signal() {
    signals.async_wait([this](Code error, int) {
      if (error) return;
      on_signal();
      wait_for_signal();
    });
  }
};

Status HttpOptions::validate() const {
  const auto address = address_of(host);
  return address ? Status() : tl::unexpected(address.error());
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpOptions& options, HttpHooks hooks) {
  auto impl = std::make_unique<Impl>();
  impl->core.limits = options.limits;
  impl->core.hooks = std::move(hooks);
  if (Status listening = impl->listen(options); !listening) return tl::unexpected(listening.error());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

int HttpServer::port() const {
  Code ignored;
  return impl_->acceptor.local_endpoint(ignored).port();
}

int HttpServer::connections() const { return impl_->core.connections; }
void HttpServer::run() { impl_->core.io.run(); }
void HttpServer::stop() { impl_->core.io.stop(); }

void HttpServer::close() {
  Code ignored;
  impl_->core.closing = true;
  impl_->acceptor.close(ignored);
  const auto open = impl_->core.open;  // who closes leaves it
  for (const auto& connection : open) connection->close_if_idle();
}

void HttpServer::every(double seconds, std::function<void()> call) {
  impl_->tickers.push_back(
      std::unique_ptr<Ticker>(new Ticker{net::steady_timer(impl_->core.io), seconds, std::move(call)}));
  impl_->tickers.back()->wait();
}

void HttpServer::on_signals(std::function<void()> call) {
  impl_->on_signal = std::move(call);
  impl_->signals.add(SIGINT);
  impl_->signals.add(SIGTERM);
  impl_->wait_for_signal();
}

}  // namespace coppice::serve
