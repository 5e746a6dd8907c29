// A client for tests that sends what it likes, right or wrong, and sees what comes back.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace coppice::serve {

class TestClient {
 public:
  // `receive_bytes`: of the socket's buffer, to be a slow reader with; 0: as it is.
  explicit TestClient(int port, int receive_bytes = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  ~TestClient() { close(); }

  bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // What comes until `end` is in it, the connection ends, or nothing comes for 5 seconds.
  std::string read_until(std::string_view end) {
    while (end.empty() || got_.find(end) == std::string::npos) {
      pollfd waits{socket_, POLLIN, 0};
      char bytes[4096];
      if (::poll(&waits, 1, 5000) <= 0) break;
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) {
        ended_ = true;
        break;
      }
      got_.append(bytes, static_cast<std::size_t>(count));
    }
    std::string out;
    const std::size_t at = end.empty() ? std::string::npos : got_.find(end);
    if (at == std::string::npos) {
      out.swap(got_);
    } else {
      out = got_.substr(0, at + end.size());
      got_.erase(0, at + end.size());
    }
    return out;
  }
  std::string read_all() { return read_until(""); }
  bool ended() const { return ended_; }

 private:
  int socket_;
  bool connected_ = false, ended_ = false;
  std::string got_;
};

}  // namespace coppice::serve
