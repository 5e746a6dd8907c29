// API keys.
#pragma once

#include <coppice/error.h>

#include <string>
#include <string_view>
#include <vector>

namespace coppice::serve {

// Whether two texts are equal, in a time that does not depend on where they differ. That one is longer may
// show.
bool equal_in_constant_time(std::string_view secret, std::string_view given);

class ApiKeys {
 public:
  // Without keys everybody may ask.
  bool wanted() const { return !keys_.empty(); }
  // Of an Authorization field: "Bearer KEY" with one of the keys. All are compared, whichever is right.
  bool allow(std::string_view authorization) const;
  Status add(std::string key);  // an empty or unprintable one is refused
  // One a line; empty lines and those that begin with # are skipped. `name` is what errors call the file.
  Status add_lines(std::string_view text, const std::string& name);

 private:
  std::vector<std::string> keys_;
};

}  // namespace coppice::serve
