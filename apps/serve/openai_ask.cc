#include "openai_ask.h"

namespace coppice::serve {

OpenAiCommon read_common(Fields& fields, Ask& ask) {
  OpenAiCommon common;
  ask.model = fields.text("model");
  ask.stream = fields.boolean("stream", false);
  ask.speculation = read_speculation(fields);
  common.asked.n = fields.maybe_integer("n", 1, kMostChoices).value_or(1);
  read_sampling(fields, common.asked);
  if (const Json* options = fields.object("stream_options")) {
    Fields own(*options, "stream_options");
    common.include_usage = own.boolean("include_usage", false);
    own.boolean("include_obfuscation", false);
    if (const auto end = own.finish(); !end) fields.error(end.error());
    if (!ask.stream) fields.error("stream_options", "is for streams; set stream to true");
  }
  for (const char* name : {"user", "safety_identifier", "prompt_cache_key"}) fields.maybe_text(name);
  return common;
}

OpenAiStyle style_of(const OpenAiCommon& common, const Ask& ask) {
  OpenAiStyle style;
  style.stream = ask.stream;
  style.include_usage = common.include_usage;
  style.n = common.asked.n;
  style.logprobs = common.asked.sampling.logprobs >= 0;
  style.trace = ask.speculation && ask.speculation->trace;
  style.stats = ask.speculation && ask.speculation->stats;
  style.show_special = common.asked.show_special;
  return style;
}

}  // namespace coppice::serve
