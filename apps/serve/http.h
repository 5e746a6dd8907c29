// HTTP as the rest of the server sees it: a request that has come in whole, and where its answer goes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::serve {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string id;           // of the client's X-Request-Id, or made here; every answer carries it
  std::string method;       // "POST"
  std::string path, query;  // as sent, not decoded; the path begins with /
  HttpFields fields;        // names in lower case, in the order they came
  std::string body;         // whole
  std::string peer;         // address and port
  double arrived = 0;       // seconds of the steady clock at which it was there in whole
  bool has(std::string_view name) const;                // lower case
  std::string_view field(std::string_view name) const;  // the first of that name; "" if there is none
};

// How an answer begins. Date, Connection, X-Request-Id and the length are added on the way.
struct HttpHead {
  int status = 200;
  std::string content_type;  // "": there is no body
  HttpFields fields;
};

// Where the answer to one request goes: either send(), or begin(), write()... and end(), from one thread at a
// time; the rest from any. A reply that is dropped before its end becomes an error 500, or a connection that
// is cut.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(HttpHead head, std::string body) = 0;
  virtual void begin(HttpHead head) = 0;
  // False: nobody reads any more, or so slowly that more than the limit waits to be sent. Stop then.
  virtual bool write(std::string_view bytes) = 0;
  virtual void end() = 0;
  virtual bool gone() const = 0;  // the connection was lost, or given up
  // Called once, on the transport's thread, when the connection is lost before the answer has ended; at once,
  // on this one, if it was already.
  virtual void when_gone(std::function<void()> told) = 0;
};

// On the transport's thread: it must return soon.
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

// What came of one request, for counters and the access log.
struct HttpOutcome {
  std::string id, method, path, peer;
  int status = 0;           // 0: the connection was lost before an answer began
  std::uint64_t bytes = 0;  // of the answer, its head included
  double seconds = 0;       // from the request's first byte
  bool lost = false;        // the client went away before the end
};

}  // namespace coppice::serve
