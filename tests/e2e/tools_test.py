"""Tool calls, JSON mode and images through generate and chat, with the demo model."""
import base64
import json

import program
from program import ProgramTest

GREEDY = ("--temperature", "0")
TOOLS = [
    {"type": "function", "function": {
        "name": "set_timer", "description": "Start a timer.",
        "parameters": {"type": "object", "required": ["minutes"],
                       "properties": {"minutes": {"type": "integer", "description": "Length in minutes"}}}}},
    {"type": "function", "function": {
        "name": "get_stock_price", "description": "Get the price of a stock.",
        "parameters": {"type": "object", "required": ["symbol"],
                       "properties": {"symbol": {"type": "string", "description": "Ticker symbol"}}}}},
]
ASK = "Start a 21 minute timer."
# 1 x 1 pixels, grey.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVQI12NoAAAAggCB3UNq9AAAAABJRU5ErkJggg==")


class Tools(ProgramTest):
    def setUp(self):
        super().setUp()
        self.tools = self.write("tools.json", json.dumps(TOOLS))

    def test_a_call_is_apart_from_the_text(self):
        result = self.result("generate", "--prompt", ASK, "--tools", self.tools, *GREEDY)
        self.assertEqual([(c["name"], c["arguments"]) for c in result["tool_calls"]],
                         [("set_timer", {"minutes": 21})])
        self.assertRegex(result["tool_calls"][0]["id"], r"^call_00_[0-9A-Za-z]{20}[0-9]{4}$")
        self.assertEqual(result["finish_reason"], "stop")
        self.assertNotIn("DSML", result["text"])
        plain = self.text("generate", "--prompt", ASK, "--tools", self.tools, *GREEDY)
        self.assertEqual(plain.splitlines()[-1], '→ set_timer {"minutes": 21}')
        self.assertNotIn("DSML", plain)

    def test_thinking_comes_before_the_call(self):
        result = self.result("generate", "--prompt", ASK, "--tools", self.tools, "--think", "high", *GREEDY)
        self.assertIn("set_timer", result["reasoning"])
        self.assertEqual(result["tool_calls"][0]["arguments"], {"minutes": 21})
        self.assertNotIn("_ET_", result["tool_calls"][0]["id"])

    def test_a_body_with_tools_and_required_choice(self):
        body = self.write("body.json", json.dumps({
            "messages": [{"role": "user", "content": ASK}], "tools": TOOLS, "temperature": 0,
            "tool_choice": {"type": "function", "function": {"name": "set_timer"}}}))
        result = self.result("generate", "--messages", body)
        self.assertEqual(result["tool_calls"][0]["name"], "set_timer")

    def test_a_cut_call_is_marked_and_its_arguments_are_json(self):
        whole = self.result("generate", "--prompt", ASK, "--tools", self.tools, *GREEDY)
        cut = self.result("generate", "--prompt", ASK, "--tools", self.tools, *GREEDY,
                          "--max-tokens", len(whole["token_ids"]) - 8)
        self.assertEqual(cut["finish_reason"], "length")
        for call in cut.get("tool_calls", []):
            self.assertIsInstance(call["arguments"], dict)

    def test_lines_may_have_tools_and_formats(self):
        line = {"id": "t", "messages": [{"role": "user", "content": ASK}], "tools": TOOLS}
        json_line = {"id": "j", "response_format": {"type": "json_object"}, "messages": [
            {"role": "user", "content": 'Return json with an array "colors" of: pink, green'}]}
        file = self.write("in.jsonl", json.dumps(line) + "\n" + json.dumps(json_line) + "\n")
        results = [json.loads(row) for row in
                   self.text("generate", "--jsonl", file, "--quiet", *GREEDY).splitlines()]
        self.assertEqual(results[0]["tool_calls"][0]["name"], "set_timer")
        self.assertEqual(json.loads(results[1]["text"]), {"colors": ["pink", "green"]})
        bad = self.write("bad.jsonl", json.dumps({"id": "b", "prompt": "x", "tools": TOOLS}))
        done = self.run_program("generate", "--jsonl", bad, "--quiet", code=1)
        self.assertIn('goes with \\"messages\\"', done.stdout.decode())

    def test_a_chat_takes_the_result_of_a_call_and_goes_on(self):
        script = f"{ASK}\nTimer started.\n/save chat.json\n"
        out = self.text("chat", "--tools", self.tools, *GREEDY, stdin=script)
        self.assertIn('→ set_timer {"minutes": 21}\n', out)
        messages = json.loads((self.folder / "chat.json").read_text(encoding="utf-8"))
        self.assertEqual([m["role"] for m in messages], ["user", "assistant", "tool", "assistant"])
        call = messages[1]["tool_calls"][0]
        self.assertEqual(json.loads(call["function"]["arguments"]), {"minutes": 21})
        self.assertEqual((messages[2]["tool_call_id"], messages[2]["content"]), (call["id"], "Timer started."))
        self.assertTrue(messages[3]["content"])
        loaded = self.run_program("chat", *GREEDY, stdin="/load chat.json\n")
        self.assertIn("loaded 4 messages", loaded.stderr.decode())

    def test_commands_of_the_chat_for_tools_json_and_folding(self):
        script = "\n".join([f"/tools {self.tools}", "/tools absent.json", "/json", "/json", "/fold", "/think low",
                            "hi", "/think off", f"{ASK}", "/undo", "/tools", "hi"])
        done = self.run_program("chat", *GREEDY, stdin=script)
        errors = done.stderr.decode()
        for says in ("tools: set_timer get_stock_price", "absent.json", "JSON objects", "answers are text",
                     "folded", f"forgot: {ASK}", "no tools"):
            self.assertIn(says, errors)
        self.assertNotIn("<think>", done.stdout.decode())
        self.assertIn("→ set_timer", done.stdout.decode())


class Images(ProgramTest):
    def body(self, url):
        return self.write("body.json", json.dumps({"messages": [{"role": "user", "content": [
            {"type": "text", "text": "What is <｜image｜>?"}, {"type": "image_url", "image_url": {"url": url}}]}]}))

    def test_render_loads_images_and_repeats_the_placeholder(self):
        body = self.body("data:image/png;base64," + base64.b64encode(PNG).decode())
        shown = json.loads(self.text("render", "--json", "--load-images", "--ids", body))
        image = shown["images"][0]
        self.assertEqual((image["bytes"], image["width"], image["height"], image["tokens"]), (len(PNG), 546, 546, 184))
        self.assertEqual(shown["ids"].count(4081), 184)
        without = json.loads(self.text("render", "--json", "--ids", body))
        self.assertEqual(without["ids"].count(4081), 1)

    def test_wrong_images_are_refused_with_their_place(self):
        for url, says in (
                ("data:image/png;base64,AAAA", "unsupported image"),
                ("data:text/plain;base64,AAAA", "unsupported image"),
                ("https://e.x/1.png", "--allow-image-urls")):
            self.fails(2, "render", "--load-images", self.body(url), says=(".messages[0].image[0]", says))
        for url in ("http://127.0.0.1/1.png", "http://[::1]/1.png", "http://169.254.169.254/latest"):
            self.fails(2, "render", "--load-images", "--allow-image-urls", self.body(url),
                       says="an address that is not fetched from")

    def test_generate_checks_images_and_says_what_is_missing(self):
        good = self.body("data:image/png;base64," + base64.b64encode(PNG).decode())
        self.fails(3, "generate", "--messages", good, says="vision tower")
        cut = self.body("data:image/png;base64," + base64.b64encode(PNG[:40]).decode())
        self.fails(2, "generate", "--messages", cut, says="PNG is damaged")


if __name__ == "__main__":
    program.main()
