// JSON from the network, bounded.
#include "json_body.h"

#include <gtest/gtest.h>

#include <string>

namespace coppice::serve {
namespace {

std::string refusal(const std::string& body) {
  const auto json = parse_body(body);
  return json ? "" : json.error().message;
}

std::string nested(int levels) {
  return "{\"a\":" + std::string(static_cast<std::size_t>(levels), '[') +
         std::string(static_cast<std::size_t>(levels), ']') + "}";
}

TEST(JsonBody, WhatIsNoJsonIsRefusedWithTheReason) {
  for (const char* body : {"", "{", "{\"a\":}", "{\"a\":NaN}", "{\"a\":Infinity}", "{\"a\":1e999}", "{'a':1}",
                           "{\"a\":1} x", "{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":01}"}) {
    EXPECT_NE(refusal(body).find("no JSON"), std::string::npos) << body;
    EXPECT_EQ(parse_body(body).error().status, 400);
  }
  EXPECT_NE(refusal("[1]").find("must be a JSON object"), std::string::npos);
}

TEST(JsonBody, AKeyTwiceInOneObjectIsRefusedAndInTwoObjectsIsNot) {
  EXPECT_NE(refusal(R"({"a":1,"b":{"c":1},"a":2})").find("\"a\" twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"x":[{"c":1,"c":1}]})").find("\"c\" twice"), std::string::npos);
  EXPECT_EQ(refusal(R"({"a":{"a":1},"b":[{"a":1},{"a":2}]})"), "");
}

TEST(JsonBody, DepthIsBoundedWhateverTheSize) {
  EXPECT_EQ(refusal(nested(kDeepestBody - 1)), "");
  EXPECT_NE(refusal(nested(kDeepestBody)).find("nested too deeply"), std::string::npos);
  EXPECT_NE(refusal(nested(1000000)).find("nested too deeply"), std::string::npos);
}

TEST(JsonBody, KeysOfOneObjectAreBounded) {
  const auto keys = [](int count) {
    std::string body = "{";
    for (int i = 0; i < count; ++i) body += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
    return body + "}";
  };
  EXPECT_EQ(refusal(keys(kMostObjectKeys)), "");
  EXPECT_NE(refusal(keys(kMostObjectKeys + 1)).find("too many keys"), std::string::npos);
}

TEST(JsonBody, BytesThatAreNoUtf8AreReplacedInAnswers) {
  EXPECT_EQ(dump(Json{{"t", "a\xff"}}), "{\"t\":\"a\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace coppice::serve
