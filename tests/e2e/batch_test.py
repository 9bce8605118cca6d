"""fathom generate --jsonl: many questions at once."""
import json
import os
import signal
import subprocess
import time

import program
from program import ProgramTest


class Batch(ProgramTest):
    def batch(self, lines, *more, code=0):
        file = self.write("in.jsonl", "\n".join(
            line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
        out = self.folder / "out.jsonl"
        done = self.run_program("generate", "--jsonl", file, "--out", out, "--quiet", *more, code=code)
        results = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        return results, done.stderr.decode()

    def test_answers_come_in_the_order_of_the_file(self):
        lines = [{"id": f"q{i}", "prompt": f"{i} * 70", "params": {"temperature": 0}} for i in range(20)]
        lines[0]["params"] = {"temperature": 0, "ignore_eos": True, "max_tokens": 60}
        results, _ = self.batch(lines, "--max-batch", "3")
        self.assertEqual([r["id"] for r in results], [f"q{i}" for i in range(20)])
        self.assertEqual(len(results[0]["token_ids"]), 60)
        self.assertEqual(results[4]["text"], "280")

    def test_an_answer_does_not_depend_on_its_neighbours(self):
        lines = [{"id": i, "prompt": f"Tell me about {i}.", "params": {"seed": i, "max_tokens": 24}}
                 for i in range(6)]
        together, _ = self.batch(lines)
        alone, _ = self.batch(lines[4:5], "--max-batch", "1", "--chunk", "2")
        self.assertEqual(together[4]["token_ids"], alone[0]["token_ids"])

    def test_all_kinds_of_input_and_n(self):
        row = next(row for row in program.golden_rows() if row["id"] == "arith-002")
        results, _ = self.batch([
            {"prompt": "4 * 70"},
            {"id": 7, "messages": [{"role": "user", "content": "4 * 70"}]},
            {"id": "ids", "prompt_token_ids": row["ids"]},
            {"id": "n", "prompt": "4 * 70", "params": {"n": 2, "seed": 9, "stop": "0"}},
        ], "--temperature", "0")
        self.assertEqual([(r["id"], r["index"]) for r in results],
                         [("1", 0), (7, 0), ("ids", 0), ("n", 0), ("n", 1)])
        self.assertEqual([r["text"] for r in results], ["280", "280", "280", "28", "28"])
        self.assertEqual([r["seed"] for r in results[3:]], [9, 10])

    def test_raw_prompts(self):
        row = next(row for row in program.golden_rows() if row["id"] == "arith-002")
        results, _ = self.batch([{"prompt": row["prompt"]}], "--raw", "--temperature", "0")
        self.assertEqual(results[0]["usage"]["prompt_tokens"], len(row["ids"]))

    def test_bad_lines_get_their_own_error_and_the_others_go_on(self):
        good = {"id": "good", "prompt": "4 * 70", "params": {"temperature": 0}}
        bad = [
            "{not json", "[1]", '"text"', '{"id": "x"}', '{"id": [1], "prompt": "a"}',
            '{"id": "two", "prompt": "a", "messages": []}', '{"id": "none", "messages": []}',
            '{"id": "empty", "prompt": ""}', '{"id": "extra", "prompt": "a", "foo": 1}',
            '{"id": "param", "prompt": "a", "params": {"foo": 1}}',
            '{"id": "range", "prompt": "a", "params": {"temperature": -1}}',
            '{"id": "type", "prompt": "a", "params": {"max_tokens": "many"}}',
            '{"id": "zero", "prompt": "a", "params": {"max_tokens": 0}}',
            '{"id": "huge", "prompt": "a", "params": {"max_tokens": 1000000}}',
            '{"id": "vocab", "prompt_token_ids": [4096]}',
            '{"id": "negative", "prompt_token_ids": [-1]}',
            '{"id": "stop", "prompt": "a", "params": {"stop": [""]}}',
            '{"id": "long", "prompt": "' + "word " * 20000 + '"}',
            "[" * 5000,
        ]
        lines = [good]
        for line in bad:
            lines += [line, good]
        results, errors = self.batch(lines, code=1)
        self.assertEqual(len(results), len(lines))
        for i, result in enumerate(results):
            if i % 2 == 0:
                self.assertEqual(result["text"], "280")
            else:
                self.assertEqual(result["finish_reason"], "error", bad[i // 2][:60])
                self.assertTrue(result["error"]["message"])
                self.assertEqual(result["error"]["code"], "invalid argument", bad[i // 2][:60])
        self.assertIn(f"{len(bad)} answers", errors)
        self.assertEqual(errors.count("\n"), 1)

    def test_blank_lines_do_not_count_and_invalid_utf8_is_an_error_of_its_line(self):
        file = self.write("in.jsonl", b'\n{"id": "a", "prompt": "\xff"}\r\n  \n{"id": "b", "prompt": "4 * 70"}')
        out = self.text("generate", "--jsonl", file, "--temperature", "0", "--quiet", code=1)
        first, second = map(json.loads, out.splitlines())
        self.assertIn("UTF-8", first["error"]["message"])
        self.assertEqual((second["id"], second["text"]), ("b", "280"))

    def test_standard_input_to_standard_output(self):
        line = '{"id": "a", "prompt": "4 * 70", "params": {"temperature": 0}}'
        out = self.text("generate", "--jsonl", "-", "--out", "-", stdin=line)
        self.assertEqual(json.loads(out)["text"], "280")

    def test_a_partner_may_wait_for_each_answer(self):
        process = subprocess.Popen(
            [program.settings.program, "generate", "--jsonl", "-", "--temperature", "0", "--quiet"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment)
        for line, text in (("{}", ""), ('{"prompt": "4 * 70"}', "280"), ('{"prompt": "4 * 70"}', "280")):
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            self.assertEqual(json.loads(process.stdout.readline())["text"], text)
        process.stdin.close()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=30), 1)

    def test_nothing_half_written_is_left(self):
        line = json.dumps({"prompt": "Tell me a story.", "params": {"ignore_eos": True, "max_tokens": 4000}})
        file = self.write("in.jsonl", "\n".join([line] * 40))
        out = self.folder / "out.jsonl"
        process = subprocess.Popen(
            [program.settings.program, "generate", "--jsonl", file, "--out", out],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=self.environment)
        deadline = time.monotonic() + 30
        while len(os.listdir(self.folder)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(os.listdir(self.folder), ["in.jsonl"])

    def test_files_that_cannot_be(self):
        file = self.write("in.jsonl", '{"prompt": "hi"}')
        self.fails(2, "generate", "--jsonl", "absent.jsonl", says="absent.jsonl")
        self.fails(2, "generate", "--jsonl", self.folder, says="is a folder")
        self.fails(2, "generate", "--jsonl", file, "--out", self.folder, says="is a folder")
        self.fails(2, "generate", "--jsonl", file, "--out", "no/such/out", says="no/such/out")
        self.fails(2, "generate", "--out", "x", says="--jsonl")


if __name__ == "__main__":
    program.main()
