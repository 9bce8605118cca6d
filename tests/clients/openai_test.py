"""The openai package against fathom serve.  Usage: openai_test.py --program FATHOM --root DIR"""
import asyncio
import json
import typing

import served
from served import COLORS, FRANCE, PNG, TIMER, TIMER_SCHEMA, WEATHER_SCHEMA, ServedTest

try:
    import openai
    import pydantic  # comes with it
except ImportError:
    openai = None

OFF = {"thinking": {"type": "disabled"}}
TOOLS = [{"type": "function", "function": {"name": "set_timer", "description": "Start a timer.",
                                           "parameters": TIMER_SCHEMA}},
         {"type": "function", "function": {"name": "get_weather", "description": "Get the current weather of a city.",
                                           "parameters": WEATHER_SCHEMA}}]
SCHEMA = {"type": "object", "properties": {"colors": {"type": "array", "items": {"type": "string"}}},
          "required": ["colors"], "additionalProperties": False}


def client_of(server, key="none", **more):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=60, **more)


class OpenAiTest(ServedTest):
    def setUp(self):
        self.client = client_of(self.server)
        self.addCleanup(self.client.close)

    def chat(self, messages, **more):
        return self.client.chat.completions.create(
            model="demo", messages=[{"role": "user", "content": messages}] if isinstance(messages, str) else messages,
            **{"temperature": 0, "extra_body": OFF, **more})


class Chat(OpenAiTest):
    def test_models(self):
        self.assertIn("demo", [model.id for model in self.client.models.list()])
        self.assertEqual(self.client.models.retrieve("demo").object, "model")
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt-99")

    def test_an_answer(self):
        answer = self.chat(FRANCE)
        choice = answer.choices[0]
        self.assertEqual((choice.message.role, choice.message.content, choice.finish_reason),
                         ("assistant", "Paris", "stop"))
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertTrue(answer.id.startswith("chatcmpl-"))
        self.assertTrue(answer._request_id)

    def test_streaming_gives_the_same_text_and_usage_when_asked(self):
        whole = self.chat("Tell me a short story.", max_tokens=60)
        chunks = list(self.chat("Tell me a short story.", max_tokens=60, stream=True,
                                stream_options={"include_usage": True}))
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertGreater(len(chunks), 10)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual({c.id for c in chunks}, {chunks[0].id})

    def test_the_stream_context_of_the_package(self):
        with self.client.chat.completions.stream(model="demo", messages=FRANCE, temperature=0, extra_body=OFF) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_completion()
        self.assertIn("content.delta", kinds)
        self.assertEqual(final.choices[0].message.content, "Paris")

    def test_thinking_comes_apart(self):
        answer = self.chat("What is 113 mod 5?", extra_body={"thinking": {"type": "enabled"}}, reasoning_effort="low")
        message = answer.choices[0].message
        self.assertTrue(message.reasoning_content)
        self.assertNotIn("</think>", message.content)
        self.assertGreater(answer.usage.completion_tokens_details.reasoning_tokens, 0)

    def test_limits_and_stop_strings(self):
        cut = self.chat("Tell me a short story.", max_tokens=5)
        self.assertEqual((cut.choices[0].finish_reason, cut.usage.completion_tokens), ("length", 5))
        self.assertEqual(self.chat("4 * 70", stop=["0"]).choices[0].message.content, "28")

    def test_a_seed_repeats_and_logprobs_come(self):
        texts = {self.chat("Tell me a short story.", temperature=1, seed=5, max_tokens=20).choices[0].message.content
                 for _ in range(2)}
        self.assertEqual(len(texts), 1)
        answer = self.chat(FRANCE, logprobs=True, top_logprobs=3)
        content = answer.choices[0].logprobs.content
        self.assertEqual("".join(token.token for token in content), "Paris")
        self.assertTrue(all(len(token.top_logprobs) == 3 and token.logprob <= 0 for token in content))

    def test_the_prefix_cache_is_reported(self):
        long = [{"role": "user", "content": "Remember the word blue. " * 60 + "Which word?"}]
        self.chat(long, max_tokens=4)
        again = self.chat(long, max_tokens=4)
        self.assertGreater(again.usage.prompt_tokens_details.cached_tokens, 100)

    def test_many_at_once(self):
        async def run():
            async with openai.AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key="none", max_retries=0) as client:
                return await asyncio.gather(*[client.chat.completions.create(
                    model="demo", messages=[{"role": "user", "content": f"{i} * 70"}], temperature=0, extra_body=OFF)
                    for i in range(1, 9)])
        answers = [answer.choices[0].message.content for answer in asyncio.run(run())]
        self.assertEqual(answers[3], "280")
        self.assertEqual(len(answers), 8)


class Tools(OpenAiTest):
    def call_of(self, message):
        self.assertEqual(len(message.tool_calls), 1)
        call = message.tool_calls[0]
        return call.function.name, json.loads(call.function.arguments)

    def test_a_call_its_result_and_the_answer(self):
        messages = [{"role": "user", "content": TIMER}]
        answer = self.chat(messages, tools=TOOLS, tool_choice="required")
        self.assertEqual(answer.choices[0].finish_reason, "tool_calls")
        self.assertEqual(self.call_of(answer.choices[0].message), ("set_timer", {"minutes": 21}))
        call = answer.choices[0].message.tool_calls[0]
        messages += [answer.choices[0].message.to_dict(),
                     {"role": "tool", "tool_call_id": call.id, "content": "started"}]
        after = self.chat(messages, tools=TOOLS)
        self.assertTrue(after.choices[0].message.content)

    def test_streamed_calls_add_up(self):
        with self.client.chat.completions.stream(model="demo", messages=[{"role": "user", "content": TIMER}],
                                                 temperature=0, extra_body=OFF, tools=TOOLS,
                                                 tool_choice="required") as stream:
            final = stream.get_final_completion()
        self.assertEqual(self.call_of(final.choices[0].message), ("set_timer", {"minutes": 21}))

    def test_a_named_tool_is_called_and_none_is_not(self):
        named = self.chat(TIMER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "set_timer"}})
        self.assertEqual(self.call_of(named.choices[0].message)[0], "set_timer")
        self.assertIsNone(self.chat(TIMER, tools=TOOLS, tool_choice="none", max_tokens=20).choices[0].message.tool_calls)
        with self.assertRaises(openai.BadRequestError):
            self.chat(TIMER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "absent"}})


class Formats(OpenAiTest):
    def test_json_objects(self):
        answer = self.chat(COLORS, response_format={"type": "json_object"})
        self.assertEqual(json.loads(answer.choices[0].message.content), {"colors": ["pink", "green", "red"]})

    def test_json_schema(self):
        answer = self.chat(COLORS, response_format={
            "type": "json_schema", "json_schema": {"name": "colors", "strict": True, "schema": SCHEMA}})
        self.assertEqual(json.loads(answer.choices[0].message.content)["colors"], ["pink", "green", "red"])

    def test_a_strict_schema_holds_where_the_model_would_answer_otherwise(self):
        class Trip(pydantic.BaseModel):
            city: str
            days: typing.Literal[3, 5]
            seats: list[bool]
        question = "Name three rivers."
        free = self.chat(question).choices[0].message.content
        with self.assertRaises(pydantic.ValidationError, msg=free):
            Trip.model_validate_json(free)
        answer = self.client.chat.completions.parse(model="demo", messages=[{"role": "user", "content": question}],
                                                    temperature=1, seed=4, max_tokens=300, extra_body=OFF,
                                                    response_format=Trip)
        self.assertIn(answer.choices[0].message.parsed.days, (3, 5))


class Images(OpenAiTest):
    def test_an_image_is_answered_or_refused_by_name(self):
        content = [{"type": "text", "text": "What is in the picture?"},
                   {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]
        try:
            answer = self.chat([{"role": "user", "content": content}], max_tokens=20)
        except openai.APIStatusError as error:
            self.assertIn(error.status_code, (400, 501))
            self.assertIn("image", error.message)
        else:
            self.assertTrue(answer.choices[0].message.content)
        with self.assertRaises(openai.BadRequestError):
            content[1]["image_url"]["url"] = "file:///etc/passwd"
            self.chat([{"role": "user", "content": content}])


class Responses(OpenAiTest):
    def respond(self, text, **more):
        return self.client.responses.create(model="demo", input=text, temperature=0,
                                            **{"reasoning": {"effort": "none"}, **more})

    def test_a_response_and_what_follows_it(self):
        first = self.respond("My name is Bob.")
        self.assertEqual(first.status, "completed")
        second = self.respond("What is my name?", previous_response_id=first.id)
        self.assertIn("Bob", second.output_text)
        self.assertEqual(second.previous_response_id, first.id)
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens)
        self.assertNotIn("Bob", self.respond("What is my name?").output_text)

    def test_stored_responses_can_be_read_and_deleted(self):
        first = self.respond("4 * 70")
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, "280")
        self.client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(first.id)
        for name in (first.id, "resp_unknown"):
            with self.assertRaises((openai.NotFoundError, openai.BadRequestError)):
                self.respond("hello", previous_response_id=name)

    def test_streaming(self):
        with self.client.responses.stream(model="demo", input="4 * 70", temperature=0,
                                          reasoning={"effort": "none"}) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        self.assertEqual(final.output_text, "280")
        self.assertEqual((kinds[0], kinds[-1]), ("response.created", "response.completed"))
        self.assertIn("response.output_text.delta", kinds)

    def test_instructions_and_tools(self):
        tools = [{"type": "function", "name": "set_timer", "description": "Start a timer.",
                  "parameters": TIMER_SCHEMA, "strict": False}]
        first = self.respond(TIMER, tools=tools, tool_choice="required", instructions="Be brief.")
        call = next(item for item in first.output if item.type == "function_call")
        self.assertEqual((call.name, json.loads(call.arguments)), ("set_timer", {"minutes": 21}))
        second = self.respond([{"type": "function_call_output", "call_id": call.call_id, "output": "started"}],
                              previous_response_id=first.id, tools=tools)
        self.assertEqual(second.status, "completed")


class Completions(OpenAiTest):
    def complete(self, prompt="The capital of France is", **more):
        return self.client.completions.create(model="demo", prompt=prompt, **{"max_tokens": 6, "temperature": 0, **more})

    def test_text_echo_logprobs_and_n(self):
        plain = self.complete().choices[0]
        self.assertTrue(plain.text)
        self.assertEqual(self.complete(echo=True).choices[0].text, "The capital of France is" + plain.text)
        logprobs = self.complete(logprobs=2).choices[0].logprobs
        self.assertEqual("".join(logprobs.tokens), plain.text)
        self.assertTrue(all(len(top) >= 2 for top in logprobs.top_logprobs))
        both = self.complete(["4 * 70 =", "The capital of France is"], n=2)
        self.assertEqual([choice.index for choice in both.choices], [0, 1, 2, 3])
        self.assertEqual(both.choices[2].text, plain.text)

    def test_streaming_and_what_is_refused(self):
        text = "".join(chunk.choices[0].text for chunk in self.complete(stream=True))
        self.assertEqual(text, self.complete().choices[0].text)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(suffix="end")
        self.assertIn("suffix", caught.exception.message)


class Errors(OpenAiTest):
    def test_what_is_wrong_is_said(self):
        for more, says in (({"temperature": 5}, "temperature"), ({"max_tokens": 0}, "max_tokens"),
                           ({"top_p": 0}, "top_p"), ({"stop": [""]}, "stop")):
            with self.subTest(says), self.assertRaises(openai.BadRequestError) as caught:
                self.chat(FRANCE, **more)
            self.assertIn(says, caught.exception.message)
        with self.assertRaises(openai.BadRequestError):
            self.chat([])
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat("word " * 30_000)
        self.assertIn("maximum context length", caught.exception.message)
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="gpt-99", messages=FRANCE)
        with self.assertRaises(openai.NotFoundError):
            self.client.embeddings.create(model="demo", input="x")

    def test_a_stream_that_is_closed_ends_in_the_engine(self):
        stream = self.chat("Tell me a very long story.", stream=True, max_tokens=8000,
                           extra_body={**OFF, "ignore_eos": True})
        for _ in range(5):
            next(stream)
        stream.close()
        self.assertLess(self.server.wait_idle(), 5)
        self.assertLess(self.server.metric("fathom:generated_tokens_total"), 8000)

    def test_a_task_that_is_cancelled_ends_in_the_engine(self):
        async def run():
            async with openai.AsyncOpenAI(base_url=f"{self.server.url}/v1", api_key="none", max_retries=0) as client:
                for ask in (lambda: client.chat.completions.create(model="demo", messages=FRANCE, max_tokens=8000,
                                                                   extra_body={**OFF, "ignore_eos": True}),
                            lambda: client.responses.create(model="demo", input="Count.", max_output_tokens=8000,
                                                            extra_body={"ignore_eos": True})):
                    task = asyncio.create_task(ask())
                    await asyncio.sleep(0.5)
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
        asyncio.run(run())
        self.assertLess(self.server.wait_idle(), 5)

    def test_what_is_not_there_is_404(self):
        for call in (lambda: self.client.files.list(), lambda: self.client.moderations.create(input="x"),
                     lambda: self.client.images.generate(model="demo", prompt="x"), lambda: self.client.batches.list()):
            with self.assertRaises(openai.NotFoundError) as caught:
                call()
            self.assertIn("no such path", caught.exception.message)

    def test_a_client_that_gives_up_ends_in_the_engine(self):
        with self.assertRaises(openai.APITimeoutError):
            self.client.with_options(timeout=0.5).chat.completions.create(
                model="demo", messages=FRANCE, max_tokens=8000, extra_body={**OFF, "ignore_eos": True})
        self.server.wait_idle(5)


class Keys(ServedTest):
    @classmethod
    def setUpClass(cls):
        cls.options = ("--keys-file", served.keys_file())
        super().setUpClass()

    def ask(self, key):
        with client_of(self.server, key) as client:
            return client.chat.completions.create(model="demo", messages=FRANCE, temperature=0, extra_body=OFF)

    def test_a_key_is_needed(self):
        self.assertEqual(self.ask("sk-alice-0123456789abcdef").choices[0].message.content, "Paris")
        with self.assertRaises(openai.AuthenticationError):
            self.ask("sk-wrong")

    def test_the_limit_of_a_key(self):
        for _ in range(2):
            self.ask("sk-bob-0123456789abcdef")
        with self.assertRaises(openai.RateLimitError) as caught:
            self.ask("sk-bob-0123456789abcdef")
        self.assertGreaterEqual(int(caught.exception.response.headers["retry-after"]), 1)
        self.ask("sk-alice-0123456789abcdef")


if __name__ == "__main__":
    served.main("openai")
