// The judge's schemas, and what those lack.
#include <fstream>
#include <nlohmann/json.hpp>

#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string_view seeds[] = {
      R"({"$ref": "#"})",
      R"({"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"x": false}}], "$defs": {"a": {"properties": {"x": true}, "additionalProperties": false}}})",
      R"({"type": "number", "minimum": -1e-3, "exclusiveMaximum": 1e10})",
      R"({"anyOf": [{"enum": [1, "a", null]}, {"const": {"a": [1]}}], "type": ["integer", "object"]})",
      R"({"type": "string", "pattern": "^(\\w+|[^\\d\"]{2,3}?)\\s*\\u00e9$"})",
      R"({"type": "object", "minProperties": 1, "maxProperties": 3, "additionalProperties": {"$ref": "#"}})",
  };
  for (std::size_t i = 0; i < std::size(seeds); ++i)
    coppice::core::write_seed(arguments[1], std::to_string(i), seeds[i]);
  std::ifstream lines(COPPICE_SCHEMAS);
  std::string line;
  for (int i = 0; std::getline(lines, line); ++i)
    coppice::core::write_seed(arguments[1], "judge" + std::to_string(i),
                              nlohmann::ordered_json::parse(line)["schema"].dump());
}
