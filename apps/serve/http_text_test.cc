#include "http_text.h"

#include <gtest/gtest.h>

namespace coppice::serve {
namespace {

TEST(HttpText, AHeadSaysHowItsBodyEnds) {
  const HttpHead head{200, "text/plain", {{"ETag", "\"a\""}}};
  EXPECT_EQ(head_text(head, Framing::length, 5),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"a\"\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(
      head_text(head, Framing::chunked, 0),
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(head_text({204, "", {}}, Framing::length, 0), "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(HttpText, AnEmptyChunkIsNotWrittenForItWouldEndTheBody) {
  std::string out;
  append_chunk(out, "");
  append_chunk(out, "0123456789abcdefg");
  EXPECT_EQ(out, "11\r\n0123456789abcdefg\r\n");
}

TEST(HttpText, DatesAreThoseOfRfc9110) { EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT"); }

TEST(HttpText, ATargetIsAPathAndAQuery) {
  std::string path, query;
  EXPECT_TRUE(split_target("/v1/models?x=1?2", path, query));
  EXPECT_EQ(path, "/v1/models");
  EXPECT_EQ(query, "x=1?2");
  EXPECT_TRUE(split_target("http://host:80/a", path, query));
  EXPECT_EQ(path, "/a");
  EXPECT_EQ(query, "");
  EXPECT_TRUE(split_target("http://host", path, query));
  EXPECT_EQ(path, "/");
  EXPECT_FALSE(split_target("v1/models", path, query));
  EXPECT_FALSE(split_target("", path, query));
}

TEST(HttpText, ATargetsOwnHostIsItsAuthority) {
  EXPECT_EQ(authority_of("http://evil.example:80/a?b"), "evil.example:80");
  EXPECT_EQ(authority_of("http://evil.example?a=/"), "evil.example");
  EXPECT_EQ(authority_of("/a?b=http://evil.example"), "");
}

TEST(HttpText, AnotherVersionIsNamedAtTheLinesEnd) {
  EXPECT_TRUE(asks_for_another_version("GET / HTTP/2.0\r\nHost: a\r\n"));
  for (const char* input :
       {"GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\n", "GET / HTTX/2.0\r\n", "hello"})
    EXPECT_FALSE(asks_for_another_version(input)) << input;
}

TEST(HttpText, PercentSignsAreDecodedOrRefused) {
  std::string out;
  EXPECT_TRUE(percent_decode("a%2Fb%20c", out));
  EXPECT_EQ(out, "a/b c");
  for (const char* wrong : {"%", "%2", "%zz", "a%00b"}) EXPECT_FALSE(percent_decode(wrong, out)) << wrong;
}

TEST(HttpText, AClientsRequestIdIsShortAndPlain) {
  EXPECT_TRUE(is_request_id("a-B_9.c"));
  EXPECT_TRUE(is_request_id(new_request_id()));
  EXPECT_NE(new_request_id(), new_request_id());
  EXPECT_FALSE(is_request_id(""));
  EXPECT_FALSE(is_request_id("a b"));
  EXPECT_FALSE(is_request_id("a\r\nSet-Cookie: b"));
  EXPECT_FALSE(is_request_id(std::string(65, 'a')));
}

TEST(HttpText, NamesOfStrangersAreNotOurOwn) {
  for (const char* own : {"localhost:80", "LOCALHOST", "127.0.0.1:8080", "[::1]:8080", "192.168.1.7"})
    EXPECT_TRUE(is_own_name(host_of(own))) << own;
  for (const char* strange : {"localhost:abc", "[::1]x", "evil.example:8080", "localhost.evil.example",
                              "127.0.0.1.evil.example", "", ":80", "[::1"})
    EXPECT_FALSE(is_own_name(host_of(strange))) << strange;
}

TEST(HttpText, AnOriginIsASchemeAndAHost) {
  for (const char* right : {"https://friend.example", "http://localhost:3000", "http://[::1]:80"})
    EXPECT_TRUE(is_origin(right)) << right;
  for (const char* wrong : {"evil", "", "null", "https://", "https://a/", "ftp://a", "https://a:b"})
    EXPECT_FALSE(is_origin(wrong)) << wrong;
}

TEST(HttpText, TheMediaTypeIsWithoutItsParameters) {
  EXPECT_EQ(media_type("Application/JSON ; charset=utf-8"), "application/json");
  EXPECT_EQ(media_type(""), "");
}

}  // namespace
}  // namespace coppice::serve
