// HTTP/1.1 as text: heads, chunks, dates, and the parts of a request's target.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "http.h"

namespace coppice::serve {

std::string_view reason_phrase(int status);  // "Not Found"; "" for a status that is not known
std::string http_date(std::time_t when);     // "Sun, 06 Nov 1994 08:49:37 GMT"

// How the body that follows a head is delimited.
enum class Framing { length, chunked, until_close };

// The head of an answer with its empty line. `length` counts with Framing::length.
std::string head_text(const HttpHead& head, Framing framing, std::size_t length);
void append_chunk(std::string& out, std::string_view bytes);  // nothing for no bytes: that would end the body
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// "/a?b" and "http://host/a?b" become path and query; false for what is neither.
bool split_target(std::string_view target, std::string& path, std::string& query);
// The "host:80" of "http://host:80/a", which counts for more than the field Host; empty for a path.
std::string_view authority_of(std::string_view target);
// Whether a request's line ends in a version of HTTP that is neither 1.0 nor 1.1. `input` begins with it.
bool asks_for_another_version(std::string_view input);
// %XX decoded; false where a % is followed by something else, or what comes out has a zero byte.
bool percent_decode(std::string_view text, std::string& out);

// A request id that a client may choose: 1 to 64 letters, digits, and any of - _ .
bool is_request_id(std::string_view text);
std::string new_request_id();  // 24 hexadecimal digits

// The host of "host:port" and "[::1]:port", without brackets; empty where the port is no number.
std::string_view host_of(std::string_view host_and_port);
// An IP address, or localhost: a name that no stranger's DNS can point here.
bool is_own_name(std::string_view host);
// Whether an address to listen on is this machine's alone.
bool is_loopback(std::string_view host);

// "http://host" or "https://host:port", as a browser's field Origin has it.
bool is_origin(std::string_view text);

std::string lower_case(std::string_view text);
// "application/json; charset=utf-8" -> "application/json", in lower case.
std::string media_type(std::string_view content_type);

}  // namespace coppice::serve
