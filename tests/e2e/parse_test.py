"""fathom parse: outputs of models, without a model."""
import json

import program
from program import ProgramTest

CALL = (
    "<｜DSML｜ calls>\n"
    '<｜DSML｜ invoke name="add">\n'
    '<｜DSML｜ parameter name="a" string="false">2</｜DSML｜ parameter>\n'
    "</｜DSML｜ invoke>\n"
    "</｜DSML｜ calls>"
)
OUTPUT = "I think.</think>\n\nSure.\n\n" + CALL
REQUEST = {
    "model": "ds",
    "messages": [{"role": "user", "content": "q"}],
    "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}],
}


class Parse(ProgramTest):
    def parse(self, *arguments, stdin=""):
        return json.loads(self.text("parse", *arguments, stdin=stdin))

    def test_text(self):
        file = self.write("output.txt", OUTPUT)
        self.assertEqual(
            self.parse("--text", "--thinking", file),
            {
                "reasoning": "I think.",
                "content": "Sure.",
                "tool_calls": [{"name": "add", "arguments": '{"a": 2}'}],
                "finish": "tool_calls",
                "stop_sequence": None,
                "completion_tokens": 0,
            },
        )

    def test_options_in_the_file(self):
        output = {"text": "a STOP b", "parsing_options": {"stop_sequences": ["STOP"]}}
        parsed = self.parse(stdin=json.dumps(output))
        self.assertEqual((parsed["content"], parsed["stop_sequence"]), ("a ", "STOP"))

    def test_ids_of_the_demo_model(self):
        ids = self.result("tokenize", "--special", "Hello</think>world")["ids"]
        output = {"ids": ids, "finish_reason": "length", "parsing_options": {"thinking_initial_stage": "reasoning_start"}}
        parsed = self.parse(stdin=json.dumps(output))
        self.assertEqual((parsed["reasoning"], parsed["content"]), ("Hello", "world"))
        self.assertEqual((parsed["finish"], parsed["completion_tokens"]), ("length", len(ids)))

    def test_answers_in_the_words_of_a_protocol(self):
        output, request = self.write("output.txt", OUTPUT), self.write("request.json", json.dumps(REQUEST))
        answer = self.parse("--text", output, "--request", request)
        message = answer["choices"][0]["message"]
        self.assertEqual(message["reasoning_content"], "I think.")
        self.assertEqual(message["tool_calls"][0]["function"]["arguments"], '{"a": 2}')
        stream = self.text("parse", "--text", output, "--request", request, "--events")
        frames = stream.split("\n\n")
        self.assertEqual(frames[-2:], ["data: [DONE]", ""])
        self.assertTrue(all(frame.startswith("data: {") for frame in frames[:-2]))
        messages = dict(REQUEST, tools=[{"name": "add", "input_schema": {"type": "object"}}])
        both = {"text": OUTPUT, "protocol": "messages", "body": messages}
        blocks = self.parse(stdin=json.dumps(both))["content"]
        self.assertEqual([block["type"] for block in blocks], ["thinking", "text", "tool_use"])
        self.assertEqual(blocks[2]["input"], {"a": 2})

    def test_wrong_input(self):
        self.fails(2, "parse", stdin="[1", says="standard input")
        self.fails(2, "parse", stdin="{}", says="text, ids or chunks")
        self.fails(2, "parse", stdin='{"ids": [5, "x"]}', says=".ids[1]")
        self.fails(2, "parse", stdin='{"ids": [99999]}', says="99999")
        self.fails(2, "parse", stdin='{"chunks": [{"kind": "x"}]}', says=".chunks[0].kind")
        self.fails(2, "parse", stdin='{"text": "a", "body": {}}', says="messages")
        self.fails(2, "parse", "--text", "--events", stdin="a", says="--request")
        self.fails(2, "parse", "absent.json", says="absent.json")
        self.fails(2, "parse", "--text", stdin=b"\xff", says="UTF-8")


if __name__ == "__main__":
    program.main()
