// The transport over a real socket: what it reads, what it refuses, and what it does with clients that leave
// or dawdle.
#include "http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "http_client_testing.h"

namespace coppice::serve {
namespace {

constexpr const char* kGet = "GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n";

bool soon(const std::function<bool()>& happened) {
  for (int i = 0; i < 500 && !happened(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return happened();
}

class Transport : public testing::Test {
 protected:
  void start(const HttpLimits& limits = {}) {
    HttpOptions options;
    options.port = 0;
    options.limits = limits;
    HttpHooks hooks;
    hooks.handle = [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      handle(request, std::move(reply));
    };
    hooks.finished = [this](const HttpOutcome& outcome) {
      const std::lock_guard<std::mutex> held(mutex_);
      outcomes_.push_back(outcome);
    };
    hooks.wrong = [](int, const std::string& message) { return message; };
    auto server = HttpServer::listen(options, std::move(hooks));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    thread_ = std::thread([this] { server_->run(); });
  }
  void TearDown() override {
    if (server_) server_->stop();
    if (thread_.joinable()) thread_.join();
    const std::lock_guard<std::mutex> held(mutex_);
    held_.clear();
  }

  void handle(const HttpRequest& request, std::shared_ptr<HttpReply> reply) {
    if (request.path == "/throw") throw std::runtime_error("on purpose");
    if (request.path == "/forget") return;
    if (request.path == "/stream") {
      reply->begin({200, "text/plain", {}});
      reply->write("one ");
      reply->write("");
      reply->write("two");
      return reply->end();
    }
    if (request.path == "/hold" || request.path == "/flood") {
      reply->when_gone([this] { ++lost_; });
      if (request.path == "/flood") reply->begin({200, "text/plain", {}});
      const std::lock_guard<std::mutex> held(mutex_);
      held_.push_back(std::move(reply));
      return;
    }
    reply->send({200, "text/plain", {}},
                request.method + " " + request.path + "?" + request.query + " [" + request.body + "]");
  }
  std::shared_ptr<HttpReply> held() {
    const std::lock_guard<std::mutex> held(mutex_);
    return held_.empty() ? nullptr : held_.back();
  }
  // The whole answer to what is sent on a connection of its own, which is then closed.
  std::string answer(const std::string& request) {
    TestClient client(server_->port());
    client.send(request);
    return client.read_all();
  }
  static std::string status(const std::string& answer) {
    return answer.size() > 12 ? answer.substr(9, 3) : "none";
  }

  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
  std::mutex mutex_;
  std::vector<HttpOutcome> outcomes_;             // guarded by mutex_
  std::vector<std::shared_ptr<HttpReply>> held_;  // guarded by mutex_
  std::atomic<int> lost_{0};
};

TEST_F(Transport, AConnectionServesOneRequestAfterAnother) {
  start();
  TestClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.send("POST /echo?q=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nX-Request-Id: mine\r\n\r\nbody");
    const std::string answer = client.read_until("[body]");
    EXPECT_EQ(status(answer), "200") << answer;
    EXPECT_NE(answer.find("POST /echo?q=1 [body]"), std::string::npos);
    EXPECT_NE(answer.find("X-Request-Id: mine"), std::string::npos);
    EXPECT_EQ(answer.find("Connection: close"), std::string::npos);
  }
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(Transport, RequestsThatComeAtOnceAreAnsweredInOrder) {
  start();
  TestClient client(server_->port());
  client.send(
      "GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /stream HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: "
      "a\r\n\r\n");
  const std::string all = client.read_until("GET /b? []");
  EXPECT_LT(all.find("GET /a? []"), all.find("one "));
  EXPECT_LT(all.find("two"), all.find("GET /b? []"));
}

TEST_F(Transport, ChunkedBodiesAreReadAndStreamsAreWrittenInChunks) {
  start();
  EXPECT_NE(answer("POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: "
                   "chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n")
                .find("[abcde]"),
            std::string::npos);
  const std::string stream = answer("GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(stream.find("\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"), std::string::npos) << stream;
}

TEST_F(Transport, ToHttp10AStreamEndsWithTheConnection) {
  start();
  const std::string stream = answer("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_EQ(stream.find("Transfer-Encoding"), std::string::npos);
  EXPECT_NE(stream.find("Connection: close"), std::string::npos);
  EXPECT_EQ(stream.substr(stream.size() - 11), "\r\n\r\none two") << stream;
}

TEST_F(Transport, HeadHasTheLengthAndNoBody) {
  start();
  const std::string answer = this->answer("HEAD /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 14\r\n"), std::string::npos) << answer;
  EXPECT_EQ(answer.substr(answer.size() - 4), "\r\n\r\n");
}

TEST_F(Transport, TheBodyIsAskedForWhereTheClientWaitsForThat) {
  start();
  TestClient client(server_->port());
  client.send("POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("hi");
  EXPECT_NE(client.read_until("[hi]").find("POST /x? [hi]"), std::string::npos);
}

TEST_F(Transport, AnEmptyLineBeforeARequestIsNoPartOfIt) {
  start();
  EXPECT_EQ(status(answer("\r\n\r\nGET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")), "200");
}

TEST_F(Transport, WhatIsNoRequestIsRefusedAndTheConnectionEnds) {
  start();
  const std::pair<const char*, const char*> cases[] = {
      {"\r\n\r\n\r\nhello\r\n\r\n", "400"},
      {"GET / HTTP/1.1\nHost: a\n\n", "400"},
      {"hello\r\n\r\n", "400"},
      {"GET / HTTP/2.0\r\n\r\n", "505"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost a\r\n\r\n", "400"},
      {"GET nothing HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\n\r\n", "411"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "501"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\na", "415"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n", "417"},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"},
  };
  for (const auto& [request, wanted] : cases) {
    TestClient client(server_->port());
    client.send(request);
    const std::string answer = client.read_all();
    EXPECT_EQ(status(answer), wanted) << request << "\n" << answer;
    EXPECT_TRUE(client.ended()) << request;
  }
  EXPECT_EQ(status(answer("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")), "200");
}

TEST_F(Transport, WhatIsTooLargeIsRefused) {
  HttpLimits limits;
  limits.head_bytes = 1024;
  limits.head_fields = 5;
  limits.body_bytes = 100;
  start(limits);
  EXPECT_EQ(status(answer("GET /" + std::string(2000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n")), "431");
  EXPECT_EQ(status(answer("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(2000, 'a'))), "431");
  EXPECT_EQ(status(answer("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1\r\n\r\n")),
            "431");
  EXPECT_EQ(status(answer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n")), "413");
  EXPECT_EQ(
      status(answer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n" + std::string(101, 'a'))),
      "413");
  EXPECT_EQ(status(answer("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" +
                          std::string(101, 'a'))),
            "413");
}

TEST_F(Transport, WhoIsTooSlowIsRefused) {
  HttpLimits limits;
  limits.head_seconds = limits.body_seconds = 0.2;
  start(limits);
  EXPECT_EQ(status(answer("GET / HTT")), "408");
  EXPECT_EQ(status(answer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")), "408");
  TestClient drips(server_->port());
  for (int i = 0; i < 20 && drips.send("G"); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(status(drips.read_all()), "408") << "a byte now and then is no excuse";
}

TEST_F(Transport, WhoSaysNothingIsLetGo) {
  HttpLimits limits;
  limits.head_seconds = limits.idle_seconds = 0.2;
  start(limits);
  TestClient silent(server_->port());
  EXPECT_EQ(silent.read_all(), "");
  EXPECT_TRUE(silent.ended());
  TestClient once(server_->port());
  once.send(kGet);
  EXPECT_EQ(status(once.read_all()), "200");
  EXPECT_TRUE(once.ended());
}

TEST_F(Transport, AClientThatLeavesIsNoticedWhileItsAnswerIsMade) {
  start();
  TestClient client(server_->port());
  client.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(soon([this] { return held() != nullptr; }));
  EXPECT_FALSE(held()->gone());
  client.close();
  EXPECT_TRUE(soon([this] { return lost_ == 1; }));
  EXPECT_TRUE(held()->gone());
  EXPECT_FALSE(held()->write("x"));
  EXPECT_TRUE(soon([this] { return server_->connections() == 0; }));
  const std::lock_guard<std::mutex> held(mutex_);
  ASSERT_EQ(outcomes_.size(), 1u);
  EXPECT_TRUE(outcomes_[0].lost);
}

TEST_F(Transport, AReaderWhoFallsTooFarBehindIsCutOff) {
  HttpLimits limits;
  limits.unsent_bytes = 64 << 10;
  start(limits);
  TestClient slow(server_->port(), 4096);
  slow.send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(soon([this] { return held() != nullptr; }));
  const std::string piece(10000, 'x');
  bool wanted = true;
  int pieces = 0;
  for (; wanted && pieces < 2000; ++pieces) {
    wanted = held()->write(piece);
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_FALSE(wanted) << "the kernel takes a few megabytes, we 64 kB";
  EXPECT_TRUE(soon([this] { return server_->connections() == 0; }));
}

TEST_F(Transport, AReaderWhoTakesNothingIsCutOff) {
  HttpLimits limits;
  limits.unsent_bytes = 64 << 20;
  limits.send_seconds = 0.2;
  start(limits);
  TestClient stuck(server_->port(), 4096);
  stuck.send("GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(soon([this] { return held() != nullptr; }));
  held()->write(std::string(16 << 20, 'x'));
  EXPECT_TRUE(soon([this] { return lost_ == 1; }));
}

TEST_F(Transport, AHandlerThatFailsOrForgetsIsAnError) {
  start();
  EXPECT_EQ(status(answer("GET /throw HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")), "500");
  EXPECT_EQ(status(answer("GET /forget HTTP/1.1\r\nHost: a\r\n\r\n")), "500");
}

TEST_F(Transport, OneConnectionTooManyHears503) {
  HttpLimits limits;
  limits.connections = 2;
  start(limits);
  TestClient first(server_->port()), second(server_->port());
  ASSERT_TRUE(soon([this] { return server_->connections() == 2; }));
  TestClient third(server_->port());
  EXPECT_EQ(status(third.read_all()), "503");
  first.close();
  ASSERT_TRUE(soon([this] { return server_->connections() == 1; }));
  EXPECT_EQ(status(answer("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")), "200");
}

TEST_F(Transport, AnAddressThatCannotBeHadIsRefused) {
  start();
  HttpOptions options;
  options.port = server_->port();
  EXPECT_NE(HttpServer::listen(options, {}).error().message.find("Address already in use"),
            std::string::npos);
  options.host = "example.org";
  EXPECT_EQ(HttpServer::listen(options, {}).error().message,
            "--host example.org: an IP address is wanted, 127.0.0.1 or 0.0.0.0 for example");
}

}  // namespace
}  // namespace coppice::serve
