// One line of JSON a request: who, what, how it ended, how long it took. Nothing of what was asked or
// answered, and no query, for people put keys there.
#pragma once

#include <coppice/error.h>

#include <cstdio>
#include <memory>
#include <string>

#include "http.h"

namespace coppice::serve {

std::string access_line(const HttpOutcome& outcome, std::string_view time);  // without the line's end

class AccessLog {
 public:
  // Appends to a file; "-": stdout; "": nothing is written.
  static Result<AccessLog> open(const std::string& path);
  void write(const HttpOutcome& outcome);  // one thread

 private:
  struct Close {
    void operator()(std::FILE* file) const {
      if (file != stdout) std::fclose(file);
    }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace coppice::serve
