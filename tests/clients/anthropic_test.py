"""The anthropic package against fathom serve.  Usage: anthropic_test.py --program FATHOM --root DIR"""
import asyncio
import json

import served
from served import COLORS, FRANCE, PNG, TIMER, TIMER_SCHEMA, WEATHER_SCHEMA, ServedTest

try:
    import anthropic
except ImportError:
    anthropic = None

OFF = {"type": "disabled"}
GREEDY = {"temperature": 0}  # this version of the package has no argument for it
TOOLS = [{"name": "set_timer", "description": "Start a timer.", "input_schema": TIMER_SCHEMA},
         {"name": "get_weather", "description": "Get the current weather of a city.", "input_schema": WEATHER_SCHEMA}]


def client_of(server, **key):
    return anthropic.Anthropic(base_url=server.url, max_retries=0, timeout=60, **(key or {"api_key": "none"}))


class AnthropicTest(ServedTest):
    def setUp(self):
        self.client = client_of(self.server)
        self.addCleanup(self.client.close)

    def ask(self, messages, **more):
        return self.client.messages.create(
            model="demo", messages=[{"role": "user", "content": messages}] if isinstance(messages, str) else messages,
            **{"max_tokens": 200, "thinking": OFF, "extra_body": GREEDY, **more})


class Messages(AnthropicTest):
    def test_models(self):
        self.assertIn("demo", [model.id for model in self.client.models.list()])
        self.assertEqual(self.client.models.retrieve("demo").type, "model")
        with self.assertRaises(anthropic.NotFoundError):
            self.client.models.retrieve("claude-99")

    def test_an_answer(self):
        answer = self.ask(FRANCE)
        self.assertEqual((answer.type, answer.role, answer.stop_reason), ("message", "assistant", "end_turn"))
        self.assertEqual([(block.type, block.text) for block in answer.content], [("text", "Paris")])
        self.assertGreater(answer.usage.input_tokens, 5)
        self.assertGreater(answer.usage.output_tokens, 0)
        self.assertTrue(answer._request_id)

    def test_streaming(self):
        whole = self.ask("Tell me a short story.", max_tokens=30)
        with self.client.messages.stream(model="demo", messages=[{"role": "user", "content": "Tell me a short story."}],
                                         max_tokens=30, extra_body=GREEDY, thinking=OFF) as stream:
            pieces = list(stream.text_stream)
            final = stream.get_final_message()
        self.assertGreater(len(pieces), 10)
        self.assertEqual("".join(pieces), whole.content[0].text)
        self.assertEqual((final.stop_reason, final.usage.output_tokens), ("max_tokens", 30))
        kinds = [event.type for event in self.client.messages.create(
            model="demo", messages=FRANCE, max_tokens=50, extra_body=GREEDY, thinking=OFF, stream=True)]
        self.assertEqual((kinds[0], kinds[-1]), ("message_start", "message_stop"))

    def test_the_system_prompt_and_earlier_turns(self):
        answer = self.ask([{"role": "user", "content": "My name is Bob."}, {"role": "assistant", "content": "Hello Bob."},
                           {"role": "user", "content": [{"type": "text", "text": "What is my name?"}]}],
                          system="Answer briefly.")
        self.assertIn("Bob", answer.content[0].text)

    def test_stop_sequences(self):
        answer = self.ask("4 * 70", stop_sequences=["0"])
        self.assertEqual((answer.content[0].text, answer.stop_reason, answer.stop_sequence), ("28", "stop_sequence", "0"))

    def test_thinking_comes_as_a_block(self):
        answer = self.ask("What is 113 mod 5?", thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2000)
        self.assertEqual([block.type for block in answer.content], ["thinking", "text"])
        self.assertTrue(answer.content[0].thinking)

    def test_counting(self):
        counted = self.client.messages.count_tokens(model="demo", messages=FRANCE, thinking=OFF)
        self.assertEqual(counted.input_tokens, self.ask(FRANCE).usage.input_tokens)
        with_tools = self.client.messages.count_tokens(model="demo", messages=FRANCE, thinking=OFF, tools=TOOLS)
        self.assertGreater(with_tools.input_tokens, counted.input_tokens)

    def test_many_at_once(self):
        async def run():
            async with anthropic.AsyncAnthropic(base_url=self.server.url, api_key="none", max_retries=0) as client:
                return await asyncio.gather(*[client.messages.create(
                    model="demo", messages=[{"role": "user", "content": f"{i} * 70"}], max_tokens=20, extra_body=GREEDY,
                    thinking=OFF) for i in range(1, 9)])
        self.assertEqual(asyncio.run(run())[3].content[0].text, "280")


class Tools(AnthropicTest):
    def test_a_call_its_result_and_the_answer(self):
        answer = self.ask(TIMER, tools=TOOLS, tool_choice={"type": "any"})
        self.assertEqual(answer.stop_reason, "tool_use")
        use = next(block for block in answer.content if block.type == "tool_use")
        self.assertEqual((use.name, use.input), ("set_timer", {"minutes": 21}))
        after = self.ask([{"role": "user", "content": TIMER}, {"role": "assistant", "content": answer.content},
                          {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id,
                                                        "content": "started"}]}], tools=TOOLS)
        self.assertTrue(after.content)

    def test_streamed_calls(self):
        with self.client.messages.stream(model="demo", messages=[{"role": "user", "content": TIMER}], max_tokens=200,
                                         extra_body=GREEDY, thinking=OFF, tools=TOOLS,
                                         tool_choice={"type": "tool", "name": "set_timer"}) as stream:
            kinds = {event.type for event in stream}
            final = stream.get_final_message()
        self.assertIn("input_json", kinds)
        self.assertEqual(final.content[-1].input, {"minutes": 21})

    def test_none_means_none(self):
        answer = self.ask(TIMER, tools=TOOLS, tool_choice={"type": "none"}, max_tokens=20)
        self.assertNotIn("tool_use", [block.type for block in answer.content])


class Formats(AnthropicTest):
    def test_json_schema(self):
        schema = {"type": "object", "properties": {"colors": {"type": "array", "items": {"enum": ["pink", "green"]}}},
                  "required": ["colors"], "additionalProperties": False}
        form = {"format": {"type": "json_schema", "schema": schema}}
        # Asked for three colours, of which the schema has two.
        answer = json.loads(self.ask(COLORS, output_config=form).content[0].text)
        self.assertEqual(list(answer), ["colors"])
        self.assertLessEqual(set(answer["colors"]), {"pink", "green"})


class Errors(AnthropicTest):
    def test_an_image_is_answered_or_refused_by_name(self):
        source = {"type": "base64", "media_type": "image/png", "data": PNG}
        content = [{"type": "image", "source": source}, {"type": "text", "text": "What is in the picture?"}]
        try:
            answer = self.ask([{"role": "user", "content": content}], max_tokens=20)
        except anthropic.APIStatusError as error:
            self.assertIn(error.status_code, (400, 501))
            self.assertIn("image", error.message)
        else:
            self.assertTrue(answer.content)

    def test_what_is_wrong_is_said(self):
        for more, says in (({"extra_body": {"temperature": 5}}, "temperature"), ({"max_tokens": 0}, "max_tokens"),
                           ({"tools": [{"name": "a b", "input_schema": TIMER_SCHEMA}]}, "name")):
            with self.subTest(says), self.assertRaises(anthropic.BadRequestError) as caught:
                self.ask(FRANCE, **more)
            self.assertIn(says, caught.exception.message)
            self.assertEqual(caught.exception.body["type"], "error")
            self.assertEqual(caught.exception.body["error"]["type"], "invalid_request_error")
        with self.assertRaises(anthropic.BadRequestError):
            self.ask([])
        with self.assertRaises(anthropic.NotFoundError):
            self.client.messages.create(model="claude-99", messages=FRANCE, max_tokens=5)

    def test_a_stream_that_is_closed_ends_in_the_engine(self):
        with self.client.messages.stream(model="demo", messages=FRANCE, max_tokens=8000, thinking=OFF,
                                         extra_body={**GREEDY, "ignore_eos": True}) as stream:
            next(iter(stream.text_stream))
        self.assertLess(self.server.wait_idle(), 5)


    def test_a_task_that_is_cancelled_ends_in_the_engine(self):
        async def run():
            async with anthropic.AsyncAnthropic(base_url=self.server.url, api_key="none", max_retries=0) as client:
                task = asyncio.create_task(client.messages.create(
                    model="demo", messages=FRANCE, max_tokens=8000, thinking=OFF, extra_body={**GREEDY, "ignore_eos": True}))
                await asyncio.sleep(0.5)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
        asyncio.run(run())
        self.assertLess(self.server.wait_idle(), 5)

    def test_what_is_not_there_is_404(self):
        for call in (lambda: self.client.messages.batches.list(), lambda: self.client.beta.files.list()):
            with self.assertRaises(anthropic.NotFoundError) as caught:
                call()
            self.assertIn("no such path", caught.exception.message)


class Keys(ServedTest):
    @classmethod
    def setUpClass(cls):
        cls.options = ("--keys-file", served.keys_file())
        super().setUpClass()

    def ask(self, **key):
        with client_of(self.server, **key) as client:
            return client.messages.create(model="demo", messages=FRANCE, max_tokens=20, extra_body=GREEDY, thinking=OFF)

    def test_a_key_goes_in_either_header(self):
        for name in ("api_key", "auth_token"):
            self.assertEqual(self.ask(**{name: "sk-alice-0123456789abcdef"}).content[0].text, "Paris")
            with self.assertRaises(anthropic.AuthenticationError):
                self.ask(**{name: "sk-wrong"})

    def test_the_limit_of_a_key(self):
        for _ in range(2):
            self.ask(api_key="sk-bob-0123456789abcdef")
        with self.assertRaises(anthropic.RateLimitError):
            self.ask(api_key="sk-bob-0123456789abcdef")


if __name__ == "__main__":
    served.main("anthropic")
