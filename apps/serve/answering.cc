#include "answering.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <utility>

#include "errors.h"

namespace coppice::serve {
namespace {

constexpr const char* kRetrySeconds = "2";  // where nobody knows how long it takes

}  // namespace

void send_error(HttpReply& reply, Api api, const ApiError& error) {
  HttpHead head{error.status, "application/json", {}};
  if (error.status == 429 || error.status == 503) head.fields.emplace_back("Retry-After", kRetrySeconds);
  reply.send(std::move(head), error_body(api, error));
}

Answering::Answering(Api api, std::unique_ptr<Ask> ask, Model model, AnswerContext context,
                     std::shared_ptr<HttpReply> reply)
    : api_(api),
      ask_(std::move(ask)),
      model_(std::move(model)),
      context_(std::move(context)),
      reply_(std::move(reply)) {}

// What the writer says now, to the reader. False: nobody wants more.
template <class Call>
bool Answering::write(Call call) {
  if (over_ || reply_->gone()) return false;
  try {
    const std::string bytes = call();
    return ask_->stream ? reply_->write(bytes) : true;
  } catch (const std::exception& error) {
    fmt::print(stderr, "[an answer could not be written: {}; this is a bug of ours]\n", error.what());
    failed(server_error());
    return false;
  }
}

void Answering::accepted(const std::vector<std::string>& sources) {
  context_.sources = sources;
  writer_ = AnswerWriter::make(*ask_, model_, context_);
  if (!ask_->stream) return;
  // Proxies must not gather what should be seen at once.
  reply_->begin({200, writer_->content_type(), {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}});
  write([&] { return writer_->begin(); });
}

bool Answering::event(int index, const Event& event) {
  return write([&] { return writer_->event(index, event); });
}

void Answering::done(int index, Generation generation) {
  write([&] { return writer_->done(index, std::move(generation)); });
}

void Answering::finished() {
  if (over_ || reply_->gone()) return;
  if (ask_->stream) {
    if (write([&] { return writer_->finish(); })) reply_->end();
  } else {
    try {
      std::string body = writer_->finish();
      reply_->send({200, writer_->content_type(), {}}, std::move(body));
    } catch (const std::exception& error) {
      fmt::print(stderr, "[an answer could not be written: {}; this is a bug of ours]\n", error.what());
      failed(server_error());
    }
  }
  over_ = true;
}

void Answering::failed(const ApiError& error) {
  if (std::exchange(over_, true)) return;
  if (!ask_->stream || !writer_) return send_error(*reply_, api_, error);
  reply_->write(writer_->fail(error));
  reply_->end();
}

}  // namespace coppice::serve
