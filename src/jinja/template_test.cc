#include "jinja/template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "jinja/print.h"

namespace coppice::core::jinja {
namespace {

using Json = nlohmann::ordered_json;

Result<Text> render(std::string_view source, const Json& variables = Json::object(),
                    const Limits& limits = {}) {
  auto parsed = Template::parse(source);
  if (!parsed) return tl::unexpected(parsed.error());
  Variables values;
  for (const auto& [name, json] : variables.items()) values.emplace_back(name, from_json(json).value());
  return parsed->render(values, {limits, 1'760'000'000});
}

std::string text_of(std::string_view source, const Json& variables = Json::object()) {
  const auto text = render(source, variables);
  return text ? text->bytes() : "refused: " + text.error().message;
}

std::string refusal(std::string_view source, const Json& variables = Json::object()) {
  const auto text = render(source, variables);
  return text ? "rendered: " + text->bytes() : text.error().message;
}

// What came from data in brackets.
std::string marked(std::string_view source, const Json& variables) {
  const auto text = render(source, variables);
  if (!text) return "refused: " + text.error().message;
  std::string out;
  std::size_t at = 0;
  for (const TextRange& range : text->data()) {
    out += text->bytes().substr(at, range.begin - at) + "[" +
           text->bytes().substr(range.begin, range.end - range.begin) + "]";
    at = range.end;
  }
  return out + text->bytes().substr(at);
}

TEST(Template, RendersLoopsConditionsAndVariables) {
  EXPECT_EQ(
      text_of("{% for m in messages %}{% if loop.first %}<{% endif %}{{ m.role ~ ':' ~ m['content'] }}{{ "
              "'>' if loop.last else ', ' }}{% endfor %}",
              {{"messages", {{{"role", "user"}, {"content", "hi"}}, {{"role", "bot"}, {"content", "yo"}}}}}),
      "<user:hi, bot:yo>");
  EXPECT_EQ(text_of("{{ strftime_now('%d %b %Y') }}"), "09 Oct 2025");
}

TEST(Template, WhatComesFromDataIsKnownThroughEveryOperation) {
  const Json data = {{"x", " <b>A b</b> "}, {"l", {"p", "q"}}, {"d", {{"k", "v"}}}, {"n", 5}};
  EXPECT_EQ(marked("<{{ x }}>", data), "<[ <b>A b</b> ]>");
  EXPECT_EQ(marked("{{ '<' + x | trim + '>' }}", data), "<[<b>A b</b>]>");
  EXPECT_EQ(marked("{{ x.strip() ~ 'A' }}", data), "[<b>A b</b>]A");
  EXPECT_EQ(marked("{{ x[4:7] }}|{{ x[5] }}|{{ (x | trim)[::-1] }}", data), "[A b]|[ ]|[>b/<b A>b<]");
  EXPECT_EQ(marked("{{ x | upper }}|{{ x.title() }}|{{ x | replace('b', 'own') }}", data),
            "[ <B>A B</B> ]|[ <B>A B</B> ]|[ <]own[>A ]own[</]own[> ]");
  EXPECT_EQ(marked("{{ 'aXb'.replace('X', x | trim) }}", data), "a[<b>A b</b>]b");
  EXPECT_EQ(marked("{{ l | join(', ') }}|{{ l | first }}|{{ ', '.join(l) }}", data), "[p], [q]|[p]|[p], [q]");
  EXPECT_EQ(marked("{{ d | tojson }}|{{ d }}", data), "{\"[k]\": \"[v]\"}|{'[k]': '[v]'}");
  EXPECT_EQ(marked("{{ x | e }}", {{"x", "<&>"}}), "[&lt;&amp;&gt;]");
  EXPECT_EQ(marked("{{ x | tojson }}{{ [x] }}", {{"x", "\"\n"}}), "\"[\\\"\\n]\"['[\"\\n]']");
  EXPECT_EQ(marked("{{ '%s-%5s' % (x, l[0]) }}|{{ '{} {}'.format(l[0], 1) }}", {{"x", "a"}, {"l", {"b"}}}),
            "[a]-    [b]|[b] 1");
  EXPECT_EQ(marked("{% set y %}a{{ x }}b{% endset %}{{ y }}{% macro m(z) %}<{{ z }}>{% endmacro %}{{ m(x) }}",
                   {{"x", "1"}}),
            "a[1]b<[1]>");
  EXPECT_EQ(marked("{{ x.split('b')[0] }}{{ x.splitlines()[0] | indent(2) }}", {{"x", "abc"}}), "[aabc]");
  EXPECT_EQ(marked("{{ x * 2 }}{{ x.center(3, '*') }}", {{"x", "a"}}), "[aa]*[a]*");
  EXPECT_EQ(marked("{% for c in x %}{{ c }}-{% endfor %}{{ n }}", {{"x", "ab"}, {"n", 5}}), "[a]-[b]-5");
}

TEST(Template, ErrorsSayLineAndColumn) {
  EXPECT_EQ(refusal("a\nb {{ x.y.z }}"), "line 2, column 8: \'x\' is not defined");
  EXPECT_EQ(refusal("é{% if %}"), "line 1, column 8: an expression was expected and %} found");
  EXPECT_EQ(refusal("{{ raise_exception('no tools here') }}"),
            "line 1, column 4: the template refuses: no tools here");
  EXPECT_EQ(refusal("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}\n{{ m() }}"),
            "line 2, column 6: division by zero");
  EXPECT_EQ(refusal("{{ 'a' | nosuch }}"), "line 1, column 10: there is no filter 'nosuch'");
  EXPECT_EQ(refusal("{% for x in l %}"), "line 1, column 17: this for block has no endfor");
  EXPECT_EQ(refusal("x\n{{ 'open }}"), "line 2, column 4: this text has no closing quote");
  EXPECT_EQ(refusal("{% include 'x' %}").substr(0, 42), "line 1, column 4: the tag 'include' has no");
}

// Each ends within the limits instead of taking the machine.
TEST(Template, TimeAndMemoryAreBounded) {
  constexpr const char* kLoops =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
      "{% endfor %}{% endfor %}{% endfor %}";
  constexpr const char* kShared =
      "{% set n = namespace(x=[1]) %}{% for i in range(40) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
      "{{ n.x == n.x + [] }}{{ n.x | tojson }}";
  constexpr const char* kNested =
      "{% set n = namespace() %}{% set n.x = n %}{% for i in range(99999) %}{% set n.x = namespace(y=n.x) %}"
      "{% endfor %}{{ n }}{{ 'x' * 999999999999 }}";
  const char* greedy[] = {
      kLoops,
      "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
      "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
      kShared,
      "{% set n = namespace(x=[1]) %}{% for i in range(999) %}{% set n.x = [n.x] %}{% endfor %}",
      kNested,
      "{{ 'ab' * 9223372036854775807 }}",
      "{{ ('x' * 100000) | replace('', 'y' * 100000) }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(x) %}{{ m([x]) }}{{ m([x]) }}{% endmacro %}{{ m(1) }}",
      "{{ '%999999999d' % 1 }}",
      "{{ 'x' | indent(999999999) }}",
      "{{ 'x'.center(999999999999) }}",
      "{{ range(99999) | map('string') | map('list') | map('join', 'x' * 10000) | list | length }}",
      "{% for i in range(99999) %}{{ range(99999) | list | sort | length }}{% endfor %}",
  };
  for (const char* source : greedy) EXPECT_FALSE(render(source)) << source;
  const std::string many_brackets(100000, '('), many_blocks = [] {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += "{% if true %}";
    return text;
  }();
  EXPECT_NE(refusal("{{ " + many_brackets + "1" + std::string(100000, ')') + " }}").find("100 deep"),
            std::string::npos);
  EXPECT_NE(refusal(many_blocks).find("100 deep"), std::string::npos);
  std::string long_sum = "{{ 1", long_filter = "{{ 1", minuses = "{{ ", nots = "{{ ";
  for (int i = 0; i < 50000; ++i) long_sum += " + 1", long_filter += "|abs", minuses += "- ", nots += "not ";
  for (const std::string& source : {long_sum, long_filter, minuses, nots})
    EXPECT_FALSE(render(source + " }}"));
}

TEST(Template, SmallLimitsAreKept) {
  Limits limits;
  limits.work = 10'000;
  EXPECT_FALSE(render("{% for i in range(1000) %}x{% endfor %}", {}, limits));
  EXPECT_TRUE(render("{% for i in range(10) %}x{% endfor %}", {}, limits));
  limits = {};
  limits.depth = 20;
  EXPECT_FALSE(render("{% macro m(n) %}{{ m(n - 1) if n > 0 }}{% endmacro %}{{ m(10) }}", {}, limits));
}

TEST(Template, KnowsWhatItMentions) {
  const auto parsed = Template::parse("{% if tools %}{{ messages }}{% endif %}");
  EXPECT_TRUE(parsed->mentions("tools"));
  EXPECT_FALSE(parsed->mentions("documents"));
}

}  // namespace
}  // namespace coppice::core::jinja
