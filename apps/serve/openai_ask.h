// What OpenAI's two routes read alike.
#pragma once

#include "asked.h"
#include "openai_writer.h"

namespace coppice::serve {

// n, stream, stream_options, model, speculation, sampling, and fields that say who asks and mean nothing
// here.
struct OpenAiCommon {
  Asked asked;
  bool include_usage = false;
};
OpenAiCommon read_common(Fields& fields, Ask& ask);
OpenAiStyle style_of(const OpenAiCommon& common, const Ask& ask);

ApiResult<std::unique_ptr<Ask>> parse_completions(const Json& body);
ApiResult<std::unique_ptr<Ask>> parse_chat(const Json& body);

}  // namespace coppice::serve
