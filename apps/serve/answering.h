// Ties one Ask to its reply: what the engine brings becomes bytes, and a reader who leaves becomes a cancel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api.h"
#include "http.h"
#include "model_host.h"

namespace coppice::serve {

// An error in the API's own shape. With `retry`: how many seconds to wait, for the client.
void send_error(HttpReply& reply, Api api, const ApiError& error);

class Answering final : public Listener {
 public:
  Answering(Api api, std::unique_ptr<Ask> ask, Model model, AnswerContext context,
            std::shared_ptr<HttpReply> reply);
  void accepted(const std::vector<std::string>& sources) override;
  bool event(int index, const Event& event) override;
  void done(int index, Generation generation) override;
  void finished() override;
  void failed(const ApiError& error) override;

 private:
  template <class Call>
  bool write(Call call);

  const Api api_;
  const std::unique_ptr<Ask> ask_;
  const Model model_;  // lives as long as the writer
  AnswerContext context_;
  std::shared_ptr<HttpReply> reply_;
  std::unique_ptr<AnswerWriter> writer_;
  bool over_ = false;  // nothing more is to be said
};

}  // namespace coppice::serve
