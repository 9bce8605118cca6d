"""fathom render: what a request becomes; and the options that change a prompt."""
import json

import program
from program import ProgramTest

TOOLS = [
    {"type": "function", "function": {"name": "look", "description": "Look closer",
                                      "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "say"}},
]


class RenderTest(ProgramTest):
    def write_json(self, name, value):
        return self.write(name, json.dumps(value))

    def test_a_request_with_two_tools_and_an_image(self):
        body = self.write_json("body.json", {
            "model": "any", "reasoning_effort": 37, "tools": TOOLS,
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "What is <｜image｜> here?"},
                {"type": "image_url", "image_url": {"url": "https://e.x/1.png"}}]}]})
        shown = json.loads(self.text("render", "--json", body))
        prompt = shown["prompt"]
        self.assertIn("Reasoning Effort: 37 (range 1-100", prompt)
        self.assertIn('{"name": "look", "description": "Look closer", "parameters": {"type": '
                      '"object"}}\n{"name": "say", "description": "", "parameters": {}}', prompt)
        data = prompt.encode()
        controls = [data[begin:end].decode() for begin, end in shown["controls"]]
        self.assertEqual(controls.count("<｜image｜>"), 1)
        self.assertEqual(prompt.count("<｜image｜>"), 2)
        self.assertEqual(controls[-2:], ["<｜Assistant｜>", "<think>"])
        self.assertEqual(shown["images"], [{"path": ".messages[0]", "detail": "high",
                                            "url": "https://e.x/1.png"}])
        self.assertEqual(self.text("render", body), prompt + "\n")

    def test_protocols_versions_and_ids(self):
        body = self.write_json("m.json", {
            "system": "S", "messages": [{"role": "user", "content": "q"}],
            "thinking": {"type": "disabled"}})
        self.assertEqual(
            self.text("render", "--protocol", "messages", body),
            "<｜begin▁of▁sentence｜><｜System｜>S<｜User｜>q<｜Assistant｜></think>\n")
        self.assertEqual(self.text("render", "--protocol", "messages", "--v4", body),
                         "<｜begin▁of▁sentence｜>S<｜User｜>q<｜Assistant｜></think>\n")
        ids = self.text("render", "--protocol", "messages", "--ids", body).strip()
        self.assertEqual(self.text("tokenize", "--decode", "--special", ids),
                         "<｜begin▁of▁sentence｜><｜System｜>S<｜User｜>q<｜Assistant｜></think>\n")

    def test_wrong_requests_are_named(self):
        for text, says in (("{", "not valid JSON"), ("{}", "missing field `messages`"),
                           ('[{"role": "robot"}]', "unknown variant `robot`")):
            self.fails(2, "render", self.write("bad.json", text), says=("bad.json", says))

    def test_tools_json_mode_and_effort_reach_the_prompt_of_generate(self):
        def prompt_tokens(*options):
            ask = ("generate", "--prompt", "json", "--max-tokens", "1", "--seed", "1")
            return self.result(*ask, *options)["usage"]["prompt_tokens"]
        plain = prompt_tokens()
        self.assertGreater(prompt_tokens("--tools", self.write_json("tools.json", TOOLS)), plain + 100)
        self.assertGreater(prompt_tokens("--json-mode"), plain)
        self.assertGreater(prompt_tokens("--think", "37"), plain)
        self.fails(2, "generate", "--prompt", "x", "--think", "101", says="1 to 100")
        wrong = self.write("t.json", "[1]")
        self.fails(2, "generate", "--prompt", "x", "--tools", wrong, says="tools[0]")


if __name__ == "__main__":
    program.main()
