#include "grammar/json_schema.h"

#include <gtest/gtest.h>

#include "grammar/testing.h"

namespace coppice::core::grammar {
namespace {

struct Sample {
  const char* schema;
  std::vector<std::string> in, out;
};

void check(std::span<const Sample> samples) {
  for (const Sample& sample : samples) {
    const auto grammar = schema(sample.schema);
    for (const std::string& text : sample.in)
      EXPECT_TRUE(accepts(grammar, text)) << sample.schema << "\n" << text;
    for (const std::string& text : sample.out)
      EXPECT_FALSE(accepts(grammar, text)) << sample.schema << "\n" << text;
  }
}

TEST(JsonSchema, ObjectsHaveTheirMembersInOrder) {
  const Sample samples[] = {
      {R"({"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}})",
       {"{}", R"({"a":null})", R"({"b": null})", R"({"a": null, "b": null})",
        "{\n  \"a\": null,\n  \"b\": null\n}"},
       {R"({"b":null,"a":null})", R"({"a":null,})", R"({,"a":null})", R"({"c":null})", R"({"a":1})", "{",
        ""}},
      {R"({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"]})",
       {R"({"b":1})", R"({"a":[],"b":{}})", R"({"b":"x","c":true})", R"({"a":1,"b":2,"c":3})"},
       {"{}", R"({"a":1})", R"({"a":1,"c":2})", R"({"c":1,"b":2})"}},
      {R"({"type": "object", "properties": {"ab": {"type": "null"}}, "additionalProperties": {"type": "boolean"}})",
       {R"({"x":true})", R"({"ab":null,"y":false})", R"({"a":true,"abc":false,"":true})", R"({"a\"":true})",
        "{}"},
       {R"({"ab":true})", R"({"x":null})", R"({"x":true,"ab":null})"}},
      {R"({"type": "object", "additionalProperties": false})", {"{}", "{ }"}, {R"({"a":1})"}},
      {R"({"type": "object", "required": ["x"], "additionalProperties": {"type": "integer"}})",
       {R"({"x":1})", R"({"x":1,"y":2})"},
       {"{}", R"({"y":2})", R"({"x":"1"})"}},
      {R"({"type": "object", "patternProperties": {"^x-[a-z]+$": {"type": "integer"}}, "additionalProperties": false})",
       {"{}", R"({"x-a":1})", R"({"x-a":1,"x-bc":2})"},
       {R"({"y":1})", R"({"x-":1})", R"({"x-a":"1"})"}},
      {R"({"type": "object", "properties": {"a\"\n": {"type": "null"}}, "required": ["a\"\n"]})",
       {R"({"a\"\n":null})"},
       {R"({"a":null})"}},
      {R"({"type": "object", "properties": {"a": false, "b": true}})", {"{}", R"({"b":0})"}, {R"({"a":0})"}},
  };
  check(samples);
}

TEST(JsonSchema, ArraysHaveTheItemsAndCounts) {
  const Sample samples[] = {
      {R"({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
       {"[1]", "[1, 2]", "[1,2,3]", "[\n 1,\n 2\n]"},
       {"[]", "[1,2,3,4]", "[1,]", "[\"a\"]", "[,1]"}},
      {R"({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}, "minItems": 1})",
       {"[1]", R"([1,"a"])", R"([1,"a",null,null])"},
       {"[]", R"(["a"])", "[1,null]", R"([1,"a",1])"}},
      {R"({"type": "array", "items": [{"type": "integer"}, {"type": "string"}], "additionalItems": false})",
       {"[]", "[1]", R"([1,"a"])"},
       {R"([1,"a",2])"}},
      {R"({"type": "array", "prefixItems": [{}, {}, {}], "minItems": 2, "maxItems": 2})",
       {"[1,[]]"},
       {"[1]", "[1,2,3]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"type": "array"})", {"[]", R"([1,"a",[{"b":[null]}]])"}, {"[1 2]", "{}"}},
  };
  check(samples);
}

TEST(JsonSchema, NumbersAreInTheirRangesExactly) {
  const Sample samples[] = {
      {R"({"type": "integer"})", {"0", "-1", "123456789012345678"}, {"-0", "01", "1.0", "1e3", "+1", ""}},
      {R"({"type": "number"})",
       {"0", "-0.5", "1.25e-7", "12", "3E+2"},
       {".5", "1.", "01", "1e", "NaN", "--1"}},
      {R"({"type": "number", "minimum": -1.5, "maximum": 10.25})",
       {"-1.5", "-1.50", "-1.49", "-0.001", "0", "9.999", "10.25", "10.2", "10.2500", "10"},
       {"-1.51", "-1.500001", "-2", "10.26", "10.3", "11", "10.250001", "100"}},
      {R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})",
       {"0.5", "0.001", "0.999", "0.10"},
       {"0", "0.0", "1", "1.0", "-0.5", "1.5"}},
      {R"({"type": "number", "minimum": 5})", {"5", "5.0", "5.5", "17", "1000"}, {"4", "4.999", "-5", "-7"}},
      {R"({"type": "number", "exclusiveMaximum": -2.5})",
       {"-2.51", "-3", "-100.5"},
       {"-2.5", "-2.50", "-2", "0", "3"}},
      {R"({"type": "number", "minimum": 2, "exclusiveMinimum": true})", {"2.1", "3"}, {"2", "2.0", "1"}},
  };
  check(samples);
}

TEST(JsonSchema, IntegerRangesAgreeWithCountingThrough) {
  for (const auto& [least, most] : {std::pair(-12, 7), {0, 0}, {5, 123}, {-205, -98}, {99, 1001}, {-1, 1}}) {
    const auto grammar = schema("{\"type\": \"integer\", \"minimum\": " + std::to_string(least) +
                                ", \"maximum\": " + std::to_string(most) + "}");
    for (int i = -1200; i <= 1200; ++i)
      ASSERT_EQ(accepts(grammar, std::to_string(i)), least <= i && i <= most)
          << least << " " << most << " " << i;
  }
  const auto half = schema(R"({"type": "integer", "minimum": 0.5, "exclusiveMaximum": 3.0})");
  for (int i = -2; i < 6; ++i) EXPECT_EQ(accepts(half, std::to_string(i)), i == 1 || i == 2) << i;
}

TEST(JsonSchema, StringsHaveTheirLengthsPatternsAndFormats) {
  const Sample samples[] = {
      {R"({"type": "string"})",
       {R"("")", R"("a\n\"\\\/\u00e9\ud83d\ude00é😀")"},
       {R"("\ud83d")", R"("\ude00\ud83d")", R"("\x")", "\"\n\"", R"("a)", R"("\u12")"}},
      {R"({"type": "string", "minLength": 1, "maxLength": 3})",
       {R"("a")", R"("é😀ü")", R"("\n\u00e9x")"},
       {R"("")", R"("abcd")"}},
      {R"({"type": "string", "pattern": "^[A-Z]{2}-\\d+(\\.\\d)?$"})",
       {R"("AB-1")", R"("XY-123.4")"},
       {R"("AB-")", R"("aB-1")", R"("AB-1.")", R"("AB-12.45")", R"(" AB-1")"}},
      {R"({"type": "string", "pattern": "b|^c"})", {R"("abc")", R"("b")", R"("cx")"}, {R"("a")", R"("ac")"}},
      {R"({"type": "string", "pattern": "^[^\"a]*$"})", {R"("b\\c")", R"("\n")"}, {R"("\"")", R"("a")"}},
      {R"({"type": "string", "pattern": "^(?:ab|c+)?x$", "maxLength": 100000})", {}, {}},
      {R"({"type": "string", "pattern": "^a{2,4}$", "minLength": 1, "maxLength": 4})",
       {R"("aa")"},
       {R"("a")"}},
      {R"({"type": "string", "format": "date"})",
       {R"("2024-02-29")", R"("1999-12-31")", R"("2000-02-29")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2024-04-31")", R"("2024-13-01")", R"("24-01-01")",
        R"("0000-01-01")"}},
      {R"({"type": "string", "format": "date-time"})",
       {R"("2024-02-29T23:59:59Z")", R"("2024-02-29T00:00:00.123+05:30")"},
       {R"("2024-02-29")", R"("2024-02-29T24:00:00Z")"}},
      {R"({"type": "string", "format": "uuid"})",
       {R"("123e4567-e89b-12d3-a456-426614174000")"},
       {R"("123e4567")"}},
      {R"({"type": "string", "format": "email"})", {R"("a.b@example.org")"}, {R"("a@b")", R"("@b.org")"}},
      {R"({"type": "string", "format": "ipv4"})",
       {R"("255.0.10.1")"},
       {R"("256.0.0.1")", R"("1.2.3")", R"("01.2.3.4")"}},
      {R"({"type": "string", "format": "ipv6"})",
       {R"("::1")", R"("fe80::1:2")", R"("1:2:3:4:5:6:7:8")", R"("1::")"},
       {R"("1:2")", R"("1:2:3:4:5:6:7:8:9")", R"(":::")"}},
      {R"({"type": "string", "format": "uri"})", {R"("https://example.org/a/b?c=d#e")"}, {R"("example")"}},
      {R"({"type": "string", "format": "duration"})",
       {R"("P1DT2H")", R"("PT5M")", R"("P3W")"},
       {R"("P")", R"("P1H")"}},
  };
  for (const Sample& sample : samples)
    if (!sample.in.empty()) check({&sample, 1});
}

TEST(JsonSchema, ValuesTypesAndCombinations) {
  const Sample samples[] = {
      {R"({"enum": ["a", "ab", 1, null, {"k": [1, 2]}]})",
       {R"("a")", R"("ab")", "1", "null", R"({"k":[1,2]})", R"({"k": [1, 2]})"},
       {R"("b")", "2", R"({"k":[1]})"}},
      {R"({"const": "x"})", {R"("x")"}, {R"("y")"}},
      {R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"}},
      {R"({"type": ["integer", "null", "boolean"]})", {"1", "null", "false"}, {R"("a")", "1.5"}},
      {R"({"type": "string", "nullable": true})", {"null", R"("a")"}, {"1"}},
      {R"({})", {"1", "[]", "{}", R"("a")", "null", "true"}, {"x"}},
      {R"({"anyOf": [{"type": "integer"}, {"type": "null"}]})", {"1", "null"}, {"true"}},
      {R"({"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]},
                     {"type": "object", "properties": {"k": {"const": "b"}, "n": {"type": "integer"}}, "required": ["k", "n"]}]})",
       {R"({"k":"a"})", R"({"k":"b","n":1})"},
       {R"({"k":"b"})", R"({"k":"c"})"}},
      {R"({"allOf": [{"type": "object", "properties": {"a": {"type": "integer", "minimum": 2}}, "required": ["a"]},
                     {"properties": {"a": {"maximum": 4}, "b": {"type": "null"}}, "required": ["b"]}]})",
       {R"({"a":3,"b":null})"},
       {R"({"a":1,"b":null})", R"({"a":5,"b":null})", R"({"a":3})"}},
      {R"({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"],
           "anyOf": [{"properties": {"x": {"type": "null"}}, "required": ["x"]}, {"properties": {"y": {"type": "null"}}, "required": ["y"]}]})",
       {R"({"id":1,"x":null})", R"({"id":1,"y":null})"},
       {R"({"id":1})", R"({"x":null})"}},
      {R"({"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}, {"type": "integer"}]})",
       {"2", "3"},
       {"1", "4"}},
      {R"({"$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
           "required": ["v", "next"]}}, "$ref": "#/$defs/node"})",
       {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":{"v":3,"next":null}}})"},
       {R"({"v":1})", R"({"v":1,"next":{}})"}},
      {R"({"type": "array", "items": {"$ref": "#"}})", {"[]", "[[],[[]]]"}, {"[1]"}},
      {R"({"definitions": {"a/b~c": {"type": "null"}}, "$ref": "#/definitions/a~1b~0c"})", {"null"}, {"1"}},
  };
  check(samples);
}

TEST(JsonSchema, WhiteSpaceIsBounded) {
  const auto grammar = schema(R"({"type": "object", "properties": {"a": {"type": "integer"}}})");
  EXPECT_TRUE(accepts(grammar, "\n{ \"a\": 1 }"));
  EXPECT_TRUE(accepts(grammar, "{\n\t\"a\": 1\n}"));
  EXPECT_FALSE(accepts(grammar, "{\"a\":  1}"));
  EXPECT_FALSE(accepts(grammar, "{\"a\" : 1}"));
  EXPECT_FALSE(accepts(grammar, "{\"a\":1}\n"));
  EXPECT_FALSE(accepts(grammar, "{\n" + std::string(100, ' ') + "\"a\": 1}"));
}

TEST(JsonSchema, WhatCannotBeKeptIsRefusedByNameAndPlace) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"type": "array", "uniqueItems": true})",
       "the schema at #/uniqueItems: uniqueItems cannot be kept by a grammar; leave it out"},
      {R"({"properties": {"a": {"not": {}}}})",
       "the schema at #/properties/a/not: the keyword not cannot be kept by a grammar; leave it out"},
      {R"({"properties": {"a/b": {"if": {}}}})",
       "the schema at #/properties/a~1b/if: the keyword if cannot be kept by a grammar; leave it out"},
      {R"({"type": "number", "multipleOf": 0.1})",
       "the schema at #/multipleOf: multiples cannot be kept by a grammar; leave it out"},
      {R"({"type": "strin"})",
       "the schema at #/type: type should be one of object, array, string, number, integer, boolean and "
       "null, or a "
       "list of them"},
      {R"({"type": "string", "minLength": -1})",
       "the schema at #/minLength: minLength should be a whole number, 0 or more"},
      {R"({"$ref": "#/$defs/x"})", "the schema at #/$ref: #/$defs/x is not there"},
      {R"({"$ref": "other.json"})",
       "the schema at #/$ref: other.json is no place in this schema; references are # or #/..."},
      {R"x({"type": "string", "pattern": "(?=a)"})x",
       "the schema at #/pattern: the pattern (?=a), at character 2: looking ahead or behind is not possible "
       "in a "
       "grammar"},
      {R"({"type": "string", "pattern": "^a+$", "maxLength": 3})",
       "the schema at #/maxLength: it cannot be kept beside a pattern whose texts may break it; count with "
       "{n,m} in "
       "the pattern instead"},
      {R"([1])", "the schema at #: a schema is an object, true or false"},
      {"{\n\"a\" 1}", "the schema is no JSON: line 2, byte 7 of the text is wrong"},
      {R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
       "no text at all is allowed: the schema at #/properties/a goes on for ever"},
      {R"({"allOf": [{"type": "string"}, {"type": "integer"}]})",
       "no text at all is allowed: the schema at # contradicts itself: type is said twice: string and "
       "integer have "
       "nothing in common"},
      {R"({"properties": {"a": {"minLength": 5, "maxLength": 2}}, "required": ["a"]})",
       "no text at all is allowed: the schema at #/properties/a contradicts itself: minLength 5 is more than "
       "maxLength 2"},
      {R"({"type": "array", "items": {"enum": []}, "minItems": 3})",
       "no text at all is allowed: the schema at #/items contradicts itself: enum has no values"},
      {R"({"type": "integer", "minimum": 1000000000000000000000000000000})",
       "the schema at #/minimum: beyond it all whole numbers have more than 18 digits, which cannot be kept"},
      {R"({"type": "string", "items": {}, "type": "number"})",
       "the schema has the key type twice in one object; once is right"},
      {R"({"anyOf": [{"$ref": "#"}, {"type": "null"}]})",
       "the schema at # refers to itself (# -> #/anyOf/0 -> #) with nothing around it, which would never "
       "end; refer to it from inside an object or a list"},
      {R"x({"type": "string", "pattern": "(?i)a"})x",
       "the schema at #/pattern: the pattern (?i)a, at character 2: flags such as (?i) are not possible; "
       "write out what they allow, as in [aA]"},
      {R"x({"type": "string", "pattern": "(a)\\1"})x",
       "the schema at #/pattern: the pattern (a)\\1, at character 6: \\1 refers back to a group, which is "
       "not possible in a grammar"},
  };
  for (const auto& [text, message] : refused) EXPECT_EQ(refusal(compile_json_schema(text)), message) << text;
  EXPECT_NE(refusal(compile_json_schema(R"({"type": "string", "format": "iso-week"})"))
                .find("iso-week is not known; there are date, "),
            std::string::npos);
}

TEST(JsonSchema, WhatContradictsItselfNamesTheKeywords) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"type": "integer", "minimum": 3, "maximum": 1})", "minimum 3 and maximum 1 leave no whole number"},
      {R"({"type": "integer", "minimum": 0.2, "exclusiveMaximum": 1})",
       "minimum 0.2 and exclusiveMaximum 1 leave no whole number"},
      {R"({"type": "integer", "format": "int32", "minimum": 3000000000})",
       "minimum 3000000000 and format \"int32\" leave no whole number"},
      {R"({"type": "number", "minimum": 2, "exclusiveMaximum": 2})",
       "minimum 2 and exclusiveMaximum 2 leave no number"},
      {R"({"type": "array", "minItems": 3, "maxItems": 2})", "minItems 3 is more than maxItems 2"},
      {R"({"type": "array", "prefixItems": [{}], "items": false, "minItems": 2})",
       "minItems 2 is more than the 1 items there are schemas for"},
      {R"({"type": "object", "minProperties": 2, "maxProperties": 1})",
       "minProperties 2 is more than maxProperties 1"},
      {R"({"type": "object", "additionalProperties": false, "minProperties": 1})",
       "minProperties wants members, and additionalProperties and properties allow none"},
      {R"({"type": "object", "additionalProperties": false, "required": ["a"]})",
       "required names a, which additionalProperties forbids"},
      {R"({"properties": {"a": false}, "required": ["a"]})",
       "required names a, which #/properties/a forbids"},
      {R"({"type": "string", "enum": [1, 2]})", "no value of enum is of type string"},
      {R"({"type": "string", "const": 1})", "no value of const is of type string"},
      {R"({"const": 1, "enum": [2]})", "const is not among enum, or not of its type"},
      {R"({"allOf": [{"enum": [1]}, {"enum": [2]}]})", "enum is said twice, and no value is in both"},
      {R"({"allOf": [{"type": "string"}, false]})", "#/allOf/1 is false"},
  };
  for (const auto& [text, why] : refused) {
    const std::string wanted = "no text at all is allowed: the schema at # contradicts itself: ";
    EXPECT_EQ(refusal(compile_json_schema(text)), wanted + why) << text;
  }
  EXPECT_EQ(refusal(compile_json_schema(
                R"({"anyOf": [false, {"type": "string", "minLength": 2, "maxLength": 1}]})")),
            "no text at all is allowed: the schema at #/anyOf/1 contradicts itself: minLength 2 is more than "
            "maxLength 1");
  EXPECT_EQ(refusal(compile_json_schema(R"({"anyOf": [{"enum": []}, {"type": "null"}]})")), "compiled")
      << "one way out is enough";
}

TEST(JsonSchema, HostileOnesAreRefusedSoonAndWithASentence) {
  const std::string deep = std::string(500000, '[') + std::string(500000, ']');
  EXPECT_EQ(refusal(compile_json_schema(deep)), "the schema is nested too deeply");
  std::string nested = "true";
  for (int i = 0; i < 300; ++i) nested = "{\"items\": " + nested + "}";
  EXPECT_NE(refusal(compile_json_schema(nested)).find("nested too deeply; 100 levels are possible"),
            std::string::npos);
  // allOf of itself twice, and so on: twice as much at each level.
  std::string doubled = "{\"$defs\": {\"d0\": {\"type\": \"string\"}";
  for (int i = 1; i < 50; ++i) {
    const std::string before = "{\"$ref\": \"#/$defs/d" + std::to_string(i - 1) + "\"}";
    doubled += ", \"d" + std::to_string(i) + "\": {\"allOf\": [" + before + ", " + before + "]}";
  }
  doubled += "}, \"allOf\": [{\"$ref\": \"#/$defs/d49\"}, {}]}";
  EXPECT_NE(refusal(compile_json_schema(doubled)).find("refer to themselves"), std::string::npos);
  EXPECT_NE(
      refusal(compile_json_schema(R"({"type": "string", "pattern": "^((((a{1000}){1000}){1000}){1000})$"})")),
      "");
  EXPECT_NE(refusal(compile_json_schema(R"({"allOf": [{"$ref": "#"}, {"type": "object"}]})"))
                .find("refer to themselves"),
            std::string::npos);
  EXPECT_NE(
      refusal(compile_json_schema(R"({"type": "array", "items": {"enum": ["a"]}, "minItems": 900000})")),
      "compiled");
}

}  // namespace
}  // namespace coppice::core::grammar
