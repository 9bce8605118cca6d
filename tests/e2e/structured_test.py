"""Answers that are held to a form: JSON schema, regex, EBNF, choice, tool calls, thinking before."""
import json
import re
import unittest

import program
from program import ProgramTest

HOT = ("--temperature", "1.5")
SCHEMA = {"type": "object", "properties": {
    "name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "mood": {"enum": ["good", "bad"]}}, "required": ["name", "age", "mood"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer",
                                     "minimum": 1, "maximum": 9}}, "required": ["city", "days"]}}}]


class Structured(ProgramTest):
    def is_person(self, text):
        person = json.loads(text)
        self.assertEqual(list(person), ["name", "age", "mood"])
        self.assertLessEqual(len(person["name"]), 20)
        self.assertTrue(0 <= person["age"] <= 150)
        self.assertIn(person["mood"], ("good", "bad"))

    def test_schema_as_text_or_file(self):
        for value in (json.dumps(SCHEMA), self.write("schema.json", json.dumps(SCHEMA))):
            for seed in range(3):
                result = self.result("generate", "--prompt", "Describe a person.", *HOT, "--seed", seed,
                                     "--json-schema", value)
                self.assertEqual(result["finish_reason"], "stop")
                self.is_person(result["text"])

    def test_regex_choice_grammar_and_object(self):
        text = self.result("generate", "--prompt", "A number", *HOT, "--regex", r"[1-9]\d{2}-\d{4}")["text"]
        self.assertIsNotNone(re.fullmatch(r"[1-9]\d{2}-\d{4}", text))
        text = self.result("generate", "--prompt", "Capital of France?", "--temperature", "0", "--choice", "Rome",
                           "--choice", "Paris")["text"]
        self.assertEqual(text, "Paris")
        grammar = self.write("sum.ebnf", 'root ::= term ("+" term)+\nterm ::= [0-9] | "(" root ")"\n')
        text = self.result("generate", "--prompt", "A sum", *HOT, "--max-tokens", "200", "--seed", "1",
                           "--grammar", grammar)["text"]
        self.assertIsNotNone(re.match(r"[(0-9]", text))
        text = self.result("generate", "--prompt", "Anything", "--temperature", "0", "--json-object",
                           "--max-tokens", "300")["text"]
        self.assertTrue(text.startswith("{"), text)

    def test_thinking_is_free_and_then_the_grammar_begins(self):
        result = self.result("generate", "--prompt", "What is the capital of France?", "--think", "low",
                             "--temperature", "0", "--choice", "Rome", "--choice", "Paris")
        self.assertEqual(result["text"], "Paris")
        self.assertNotEqual(result["reasoning"], "")

    def test_same_answer_in_any_batch(self):
        lines = [{"id": i, "prompt": "Describe a person.", "params": {
            "temperature": 1.5, "seed": i, "max_tokens": 120,
            **({"guided_json": SCHEMA} if i % 2 else {"structured_outputs": {"regex": "[a-f]{5,30}"}})}}
            for i in range(6)]
        file = self.write("in.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        texts = []
        for options in ((), ("--max-batch", "1", "--no-async")):
            out = self.text("generate", "--jsonl", file, *options)
            texts.append([json.loads(line)["text"] for line in out.splitlines()])
        self.assertEqual(texts[0], texts[1])
        for text in texts[0][1::2]:
            self.is_person(text)

    def test_required_tool_is_called_with_arguments_of_its_schema(self):
        body = {"messages": [{"role": "user", "content": "How are you?"}], "tools": TOOLS,
                "tool_choice": "required", "temperature": 1.5, "seed": 3}
        file = self.write("chat.json", json.dumps(body))
        for think in ("off", "low"):
            result = self.result("generate", "--messages", file, "--think", think, "--max-tokens", "600")
            self.assertTrue(result["tool_calls"], result)
            for call in result["tool_calls"]:
                self.assertEqual(call["name"], "get_weather")
                self.assertEqual(list(call["arguments"]), ["city", "days"])
                self.assertLessEqual(len(call["arguments"]["city"]), 20)
                self.assertIn(call["arguments"]["days"], range(1, 10))

    def test_format_holds_for_a_prefix_and_the_rest_together(self):
        form = {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}}
        body = {"response_format": form, "temperature": 1.5, "seed": 2, "messages": [
            {"role": "user", "content": "Describe a person."},
            {"role": "assistant", "content": '{"name": "Ann', "prefix": True}]}
        result = self.result("generate", "--messages", self.write("chat.json", json.dumps(body)))
        self.assertEqual(result["finish_reason"], "stop")
        self.assertFalse(result["text"].startswith("{"), result["text"])
        self.is_person('{"name": "Ann' + result["text"])
        body["messages"][1]["content"] = "Here it is:"
        self.fails(2, "generate", "--messages", self.write("chat.json", json.dumps(body)),
                   says="'Here it is:'")

    def test_json_object_goes_on_from_a_prefix(self):
        body = {"response_format": {"type": "json_object"}, "temperature": 1.5, "seed": 4, "messages": [
            {"role": "user", "content": "Any data as json."},
            {"role": "assistant", "content": '{"name": "Ann', "prefix": True}]}
        result = self.result("generate", "--messages", self.write("chat.json", json.dumps(body)))
        if result["finish_reason"] == "stop":
            self.assertTrue(json.loads('{"name": "Ann' + result["text"])["name"].startswith("Ann"))
        body["messages"][1]["content"] = "["
        self.fails(2, "generate", "--messages", self.write("chat.json", json.dumps(body)), says="'['")

    def test_response_format_of_a_body(self):
        body = {"messages": [{"role": "user", "content": "Describe a person."}], "temperature": 1.5, "seed": 1,
                "response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}}}
        self.is_person(self.result("generate", "--messages", self.write("chat.json", json.dumps(body)))["text"])

    def test_faults_are_told(self):
        self.fails(2, "generate", "--prompt", "x", "--json-schema", '{"not":{}}', says=['"not"', "#"])
        self.fails(2, "generate", "--prompt", "x", "--json-schema", '{"a":', says="schema")
        self.fails(2, "generate", "--prompt", "x", "--json-schema", "/no/such/file", says="/no/such/file")
        self.fails(2, "generate", "--prompt", "x", "--regex", "(a", says="regex")
        self.fails(2, "generate", "--prompt", "x", "--regex", "a", "--choice", "b", says="only one of")
        endless = self.write("endless.ebnf", 'root ::= "a" root\n')
        self.fails(2, "generate", "--prompt", "x", "--grammar", endless, says="never end")


if __name__ == "__main__":
    program.main()
