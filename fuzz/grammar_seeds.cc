// Small grammars with everything the language has, and some that are wrong.
#include "seeds.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string_view seeds[] = {
      "root ::= \"yes\" | \"no\"",
      "root ::= [a-z]+ [^a-z\\n]* \".\"? # comment\n",
      "root ::= item{2,5} (\",\" item){,3} \"\\x41\\u00e9\\U0001F600\\n\"\nitem ::= [0-9]{3} | \"(\" root "
      "\")\"",
      "root ::= object\nvalue ::= object | array | string | number\nobject ::= \"{\" (string \":\" value "
      "(\",\" string \":\" value)*)? "
      "\"}\"\narray ::= \"[\" (value (\",\" value)*)? \"]\"\nstring ::= \"\\\"\" [^\"\\\\]* \"\\\"\"\nnumber "
      "::= \"-\"? [0-9]+",
      "root ::= \"a\" root | \"a\" root root | \"a\"",
      "root ::= a* b a b \"!\"\na ::= \"a\"?\nb ::= (\"b\" | )",
      "root ::= (\"a\"* \"a\"{300} \"p\") | (\"a\"* \"a\"{300} \"q\")",
      "root ::= list\nlist ::= list \",\" \"x\" | \"x\"",
      "root ::= . .{3,}",
  };
  for (std::size_t i = 0; i < std::size(seeds); ++i)
    coppice::core::write_seed(arguments[1], std::to_string(i), seeds[i]);
}
