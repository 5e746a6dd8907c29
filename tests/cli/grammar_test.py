"""Grammars in coppice generate and chat: what comes out is of the grammar, with speculation and without."""

import json

import program

SCHEMA = {"type": "object", "properties": {"kind": {"enum": ["left", "right"]}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
          "required": ["kind", "n"], "additionalProperties": False}


class Grammars(program.Case):
    def both(self, *arguments, tokens=120):
        """The same answer with guesses and without."""
        plain = self.generate("--plain", *arguments, tokens=tokens)
        guessed = self.generate("-d", "lookup", *arguments, tokens=tokens)
        self.assertEqual(plain["ids"], guessed["ids"])
        return plain

    def test_a_schema_in_a_file_or_as_it_is(self):
        (self.work / "schema.json").write_text(json.dumps(SCHEMA))
        for seed in range(3):
            sampled = ["--temperature", 1, "--seed", seed]
            answer = self.both("--json-schema", "schema.json", *sampled)
            self.assertEqual(answer["stop"], "end_of_text")
            value = json.loads(answer["text"])
            self.assertIn(value["kind"], ["left", "right"])
            self.assertTrue(0 <= value["n"] <= 99)
            self.assertEqual(self.generate("--json-schema", json.dumps(SCHEMA), *sampled, tokens=120)["ids"], answer["ids"])

    def test_a_grammar_in_a_file(self):
        (self.work / "moves.gbnf").write_text('root ::= move ("," move){1,3}\nmove ::= [a-h] [1-8]\n')
        answer = self.both("--grammar", "moves.gbnf")
        self.assertEqual(answer["stop"], "end_of_text")
        self.assertRegex(answer["text"], r"\A[a-h][1-8](,[a-h][1-8]){1,3}\Z")

    def test_any_object_may_be_cut_and_says_so(self):
        answer = self.both("--json-object", tokens=5)
        self.assertEqual(answer["text"].lstrip()[0], "{")
        self.assertIn(answer["stop"], ("max_tokens", "end_of_text"))

    def test_chat_answers_in_the_grammar_each_time(self):
        (self.work / "yes.gbnf").write_text('root ::= "yes" | "no"')
        out, _ = self.run_well("chat", "-m", self.model, "-t", 1, "-q", "--grammar", "yes.gbnf", input=b"Is it?\nReally?\n")
        self.assertRegex(out, r"\A((yes|no)\n){2}\Z")

    def test_what_is_wrong_is_said_in_one_sentence(self):
        generate = ["generate", "-m", self.model, "-p", "x"]
        (self.work / "wrong.gbnf").write_text('root ::= "a\n')
        self.assertEqual(self.refused(*generate, "--grammar", "wrong.gbnf"),
                         "coppice: --grammar: wrong.gbnf: line 1, column 10: the string that begins here has no end\n")
        self.assertEqual(self.refused(*generate, "--json-schema", '{"not": {}}'),
                         "coppice: --json-schema: the text given: the schema at #/not: the keyword not cannot be kept by a grammar; leave it out\n")
        self.assertIn("say one of", self.refused(*generate, "--json-object", "--grammar", "wrong.gbnf"))
        for option in ("--grammar", "--json-schema"):
            self.assertIn(f"{option}: it is empty", self.refused(*generate, option, ""))
        self.assertIn("nowhere.json", self.refused(*generate, "--json-schema", "nowhere.json"))
        self.assertIn("--ignore-eos = true: with a grammar", self.refused(*generate, "--json-object", "--ignore-eos"))


if __name__ == "__main__":
    program.main()
