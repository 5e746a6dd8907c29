#include "access_log.h"

#include <gtest/gtest.h>

namespace coppice::serve {
namespace {

TEST(AccessLog, ARequestIsOneLineOfJson) {
  HttpOutcome outcome;
  outcome.id = "id";
  outcome.method = "GET";
  outcome.path = "/a\"b\nc\xff";
  outcome.peer = "127.0.0.1:5";
  outcome.status = 404;
  outcome.bytes = 12;
  outcome.seconds = 0.25;
  EXPECT_EQ(access_line(outcome, "then"),
            R"({"time":"then","id":"id","peer":"127.0.0.1:5","method":"GET","path":"/a\"b\nc)"
            "\xef\xbf\xbd"
            R"(","status":404,"bytes":12,"seconds":0.25,"lost":false})");
}

TEST(AccessLog, AFileThatCannotBeWrittenIsRefused) {
  const auto log = AccessLog::open("/nowhere/at/all.log");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message, "--log /nowhere/at/all.log: No such file or directory");
  EXPECT_TRUE(AccessLog::open(""));
}

}  // namespace
}  // namespace coppice::serve
