"""Constraints made to take long, through the interfaces: refused within 100 ms of processor time, beside what it takes
to receive and read as many bytes of JSON."""
import json
import os
import subprocess

import program
from program import ProgramTest, settings
from serve_test import CHAT, Server

LIMIT_S = 0.1
SIZE = 10 * 10 ** 6

PROPERTIES = {f"field_{i}": {"type": "string", "description": "x" * 60} for i in range(90_000)}
LARGE = {"type": "object", "properties": PROPERTIES}
NESTED = {"anyOf": [{"type": "array", "items": {"type": ["string"]}}] * 200_000}
SMALL = [({"$ref": "#"}, "circle"),
         ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "never end"),
         ({"type": "string", "maxLength": 10 ** 6}, "maxLength"),
         ({"enum": list(range(10 ** 5))}, "bytes, at most")]


def deep(levels):
    return '{"type":"array","items":' * levels + "{}" + "}" * levels


def response_format(schema):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}}


def tool(schema, **more):
    return {"type": "function", "function": {"name": "f", "parameters": schema, **more}}


def large_bodies():
    """(path, body, part of the message), each of 10 MB."""
    messages = {"model": "demo", "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
    too_long = "262144 bytes"
    for schema in (LARGE, NESTED):
        yield CHAT, {**messages, **response_format(schema)}, too_long
        yield CHAT, {**messages, "tools": [tool(schema, strict=True)]}, too_long
        yield "/v1/responses", {"input": "x", "text": {"format": {"type": "json_schema", "name": "s",
                                                                  "schema": schema}}}, too_long
        yield "/v1/messages", {**messages, "output_config": {"format": {"type": "json_schema",
                                                                       "schema": schema}}}, too_long
        yield CHAT, {**messages, "guided_json": schema}, too_long
    tools = [tool(LARGE)]
    yield CHAT, {**messages, "tools": tools, "tool_choice": "required"}, too_long
    yield CHAT, {**messages, "guided_json": json.dumps(LARGE)}, "bytes, at most"
    yield CHAT, {**messages, "guided_regex": "a" * SIZE}, "bytes"
    yield CHAT, {**messages, "guided_grammar": 'root ::= "' + "a" * SIZE + '"'}, "bytes"
    yield CHAT, {**messages, "structured_outputs": {"choice": ["a" * 1000] * (SIZE // 1000)}}, "choice"


class ProcessTime:
    """Seconds of processor time that a process has had."""

    def __init__(self, pid):
        self.pid = pid

    def now(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class HostileTest(ProgramTest):
    def ask_timed(self, server, path, body, enough=float("inf")):
        """(status, message, least processor time of the server in two tries, or in five while it is not below `enough`)"""
        clock = ProcessTime(server.process.pid)
        least = float("inf")
        for number in range(5):
            if number >= 2 and least < enough:
                break
            before = clock.now()
            status, reply = server.ask("POST", path, body)
            least = min(least, clock.now() - before)
        return status, reply["error"]["message"], least

    def test_schemas_of_10_mb_are_refused_when_they_have_been_read(self):
        with Server(self) as server:
            for path, body, says in large_bodies():
                # The same bytes in a field that nobody reads, of a request that is refused for its messages.
                read_only = {"messages": [], "input": [], "model": "demo", "x": body}
                _, _, read_s = self.ask_timed(server, path, read_only)
                status, message, taken_s = self.ask_timed(server, path, body, enough=read_s + LIMIT_S)
                self.assertEqual(status, 400, message)
                self.assertIn(says, message)
                self.assertLess(len(message), 1000)
                self.assertLess(taken_s - read_s, LIMIT_S, f"{path} {list(body)}: {read_s} s to read it")
            status, reply = server.ask("POST", CHAT, {"messages": [{"role": "user", "content": "x"}],
                                                      "max_tokens": 2})
            self.assertEqual(status, 200, reply)  # and it is well

    def test_small_ones_that_would_grow_are_refused_over_http(self):
        with Server(self) as server:
            # Bodies may have 127 levels.
            for schema, says in [*SMALL, (json.loads(deep(115)), "nested")]:
                body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2,
                        **response_format(schema)}
                status, message, taken_s = self.ask_timed(server, CHAT, body, enough=LIMIT_S)
                self.assertEqual(status, 400, message)
                self.assertIn(says, message)
                self.assertLess(taken_s, LIMIT_S, says)

    def generate_timed(self, *arguments):
        """(exit code, stderr, processor time)"""
        with subprocess.Popen([settings.program, "generate", "--think", "off", "--max-tokens", "2", *arguments],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.environment,
                              cwd=self.folder, text=True) as process:
            said = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, said, usage.ru_utime + usage.ru_stime

    def test_the_command_line_refuses_them(self):
        start_s = min(self.generate_timed("--prompt", "x", "--regex", "(")[2] for _ in range(3))
        cases = [(json.dumps(schema), says) for schema, says in SMALL[:3]]
        cases += [(deep(1000), "nested"), (json.dumps({"enum": list(range(10 ** 5))}), "bytes, at most"),
                  (json.dumps(LARGE), "bytes, at most")]
        file = self.folder / "schema.json"
        for text, says in cases:
            file.write_text(text, encoding="utf-8")
            code, said, taken_s = self.generate_timed("--prompt", "x", "--json-schema", str(file))
            self.assertEqual(code, 2, said)
            self.assertIn(says, said)
            self.assertLess(taken_s - start_s, LIMIT_S, says)

    def test_messages_with_a_large_schema_are_refused_before_they_are_encoded(self):
        messages = {"messages": [{"role": "user", "content": "x"}]}
        file = self.folder / "chat.json"
        file.write_text(json.dumps({"messages": [], "x": LARGE}), encoding="utf-8")
        read_s = min(self.generate_timed("--messages", str(file))[2] for _ in range(2))
        file.write_text(json.dumps({**messages, **response_format(LARGE)}), encoding="utf-8")
        code, said, taken_s = self.generate_timed("--messages", str(file))
        self.assertNotEqual(code, 0)
        self.assertIn("262144 bytes", said)
        self.assertLess(taken_s - read_s, LIMIT_S)


if __name__ == "__main__":
    program.main()
