// The transport: listens, reads requests within limits, hands them over, sends answers. One thread (that of
// run()) does all of it; what is slow about a client costs memory within the limits and no thread.
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "http.h"

namespace coppice::serve {

struct HttpLimits {
  std::size_t head_bytes = 16 << 10;  // of a request's line and fields
  int head_fields = 100;
  std::size_t body_bytes = 4 << 20;
  std::size_t unsent_bytes = 1 << 20;  // of a stream; a reader that is further behind is cut off
  std::size_t early_bytes = 64 << 10;  // sent before the answer to the request before it has ended
  int connections = 512;               // at once; one more hears 503
  double head_seconds = 10;            // from a request's first byte to the end of its fields
  double body_seconds = 30;            // from there to its last byte
  double idle_seconds = 75;            // between two requests
  double send_seconds = 30;            // in which the client must take at least something of what is sent
};

struct HttpOptions {
  std::string host = "127.0.0.1";  // an address, or localhost
  int port = 8080;                 // 0: any that is free
  HttpLimits limits;
  Status validate() const;  // of `host`
};

// All but `wrong` are called on the transport's thread.
struct HttpHooks {
  HttpHandler handle;
  std::function<void(const HttpOutcome&)> finished;
  // The body (JSON) of an answer to what is no request, or too large, or too slow.
  std::function<std::string(int status, const std::string& message)> wrong;
};

class HttpServer {
 public:
  // Listens at once. The error says what is wrong with address or port.
  static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions& options, HttpHooks hooks);
  ~HttpServer();

  int port() const;         // that it listens on
  int connections() const;  // any thread
  void run();               // until stop()
  void stop();              // any thread; open connections are cut by the destructor
  // Transport's thread, or before run():
  void
  close();  // no new connections; those that wait for a request are closed, the others after their answer
  void every(double seconds, std::function<void()> call);
  void on_signals(std::function<void()> call);  // SIGTERM and SIGINT, each time one comes

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice::serve
