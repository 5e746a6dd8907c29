// What the answer's text has to look like: a grammar, a JSON Schema, any JSON object.
#pragma once

#include <string>
#include <vector>

#include "json_fields.h"

namespace coppice::serve {

struct OutputFormat {
  enum class Kind { free, json_object, json_schema, grammar };
  Kind kind = Kind::free;
  std::string text;   // the schema as JSON, or the grammar
  std::string param;  // the field that asked for it
  // Of a schema put together here: a place in it, as a JSON pointer, and the field that this part is.
  struct Part {
    std::string place, param;
  };
  std::vector<Part> parts = {};
};

// `response_format` as OpenAI has it, and Coppice's own `grammar` and `json_schema`; more than one is an
// error.
OutputFormat read_format(Fields& fields);
// Coppice's own alone, for routes without response_format; and Ollama's `format`: "json" or a schema.
OutputFormat read_own_format(Fields& fields);
OutputFormat read_ollama_format(Fields& fields);

// Puts the grammar into `sampling`. Errors: what is wrong with the grammar or the schema, and where.
tl::expected<void, ApiError> constrain(Sampling& sampling, const OutputFormat& format);

}  // namespace coppice::serve
