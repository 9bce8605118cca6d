#!/usr/bin/env python3
"""The program on a GPU as a user runs it: same texts as on the CPU, memory that adds up, clear errors, a server that ends.

Usage: program_test.py FATHOM SOURCE_DIR.  Ends with 77 if the program finds no GPU.
"""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

from preload import build, build_driver

FATHOM = sys.argv[1]
SOURCE = pathlib.Path(sys.argv[2])
MODEL = ["--model", str(SOURCE / "models/demo")]
MIB = 1 << 20


def fathom(*args, timeout=120, env=None):
    return subprocess.run([FATHOM, *args], capture_output=True, text=True, timeout=timeout, check=False, env={**os.environ, **(env or {})})


def answers(*options):
    """Token ids of greedy and of seeded answers."""
    lines = (SOURCE / "tests/data/demo/eval.jsonl").read_text().splitlines()[::23]
    with tempfile.TemporaryDirectory() as folder:
        questions = pathlib.Path(folder) / "q.jsonl"
        with questions.open("w") as out:
            for i, line in enumerate(lines):
                params = {"temperature": i % 2, "seed": i, "max_tokens": 24}
                print(json.dumps({"id": str(i), "prompt": json.loads(line)["prompt"], "params": params}), file=out)
        done = fathom("generate", *MODEL, *options, "--jsonl", str(questions), "--quiet")
        assert done.returncode == 0, done.stderr
        return [json.loads(line)["token_ids"] for line in done.stdout.splitlines()]


class Server:
    """`fathom serve` on the GPU, at a free port."""

    def __init__(self, *options, env=None):
        self.process = subprocess.Popen([FATHOM, "serve", *MODEL, "--port", "0", "--device", "cuda:0", "--log-level", "off", *options],
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        self.start = ""
        for line in self.process.stderr:
            self.start += line
            if "listening on " in line:
                self.url = line.split("listening on ")[1].strip()
                break

    def ask(self, text, on_start=lambda: None, **fields):
        """Text and finish reason of a streamed answer; on_start() is called when it begins."""
        body = {"messages": [{"role": "user", "content": text}], "thinking": {"type": "disabled"}, "stream": True, **fields}
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
        text, finish = "", None
        with urllib.request.urlopen(request, timeout=60) as response:
            for i, line in enumerate(response):
                if i == 0:
                    on_start()
                if line.startswith(b"data: {"):
                    for choice in json.loads(line[6:]).get("choices", []):
                        text += choice["delta"].get("content") or ""
                        finish = choice.get("finish_reason") or finish
        return text, finish


class ProgramOnAGpu(unittest.TestCase):
    def test_answers_do_not_depend_on_how_it_runs(self):
        want = answers("--device", "cuda:0")
        for options in (["--device", "auto", "--max-draft", "0"], ["--device", "cuda", "--max-batch", "1", "--no-async"],
                        ["--device", "cuda:0", "--chunk", "32", "--prefix-cache", "off"],
                        ["--device", "cuda:0", "--experts-in", "host", "--engram-in", "host"]):
            self.assertEqual(answers(*options), want, options)

    def test_nearly_all_answers_are_those_of_the_cpu(self):
        gpu, cpu = answers("--device", "cuda:0"), answers("--device", "cpu", "--numerics", "reference")
        same = sum(a == b for a, b in zip(gpu, cpu))
        self.assertGreaterEqual(same, 0.85 * len(cpu))

    def test_memory_adds_up(self):
        done = fathom("info", *MODEL, "--device", "cuda:0", "--experts-in", "host", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        gpu = json.loads(done.stdout)["gpu"]
        self.assertEqual(sum(gpu["on_device"].values()), gpu["used_bytes"])
        self.assertLessEqual(gpu["used_bytes"], gpu["budget_bytes"])
        self.assertGreater(gpu["on_host"]["weights: experts"], 7 * MIB)
        # A row of logits for every row of the largest step, and lists.
        self.assertGreater(gpu["on_host"]["logits and lists of steps"], 512 * 4096 * 4)
        # More than the host has, but not more than sequences can use.
        self.assertEqual(fathom("info", *MODEL, "--device", "cuda:0", "--kv-memory", "10T").returncode, 0)

    def test_errors_say_what_to_do(self):
        for code, option, says in ((3, ["--device", "cuda:9"], "cuda:0 is the first"), (2, ["--device", "cuda:x"], "cuda:N"),
                                   (2, ["--device", "cuda:0", "--numerics", "int8"], "--device cpu"),
                                   (4, ["--device", "cuda:0", "--kv-memory", "1K"], "give more")):
            done = fathom("generate", *MODEL, *option, "--prompt", "hi")
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertIn(says, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_gpu_that_is_not_supported_is_said_and_auto_takes_the_cpu(self):
        ctypes.CDLL("libcuda.so.1")
        driver = next(line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "libcuda.so" in line)
        with tempfile.TemporaryDirectory() as folder:
            build_driver("older_gpu.cc", folder)
            path = os.pathsep.join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH"))))
            older = {"LD_LIBRARY_PATH": path, "REAL_LIBCUDA": driver}
            done = fathom("generate", *MODEL, "--device", "cuda:0", "--prompt", "hi", env=older)
            self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
            for words in ("compute capability 8.0", "supported are 9.0 (H100, H200)", "--device cpu"):
                self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            done = fathom("generate", *MODEL, "--prompt", "What is the capital of France?", env=older)
            self.assertEqual((done.returncode, done.stdout.strip()), (0, "Paris"), done.stderr)

    def test_sixteen_clients_get_what_one_gets_and_sigterm_ends_when_answers_do(self):
        server = Server("--client-sampling")
        self.assertIn("logits and lists of steps", server.start)
        asks = [(f"Count to {i}.", {"temperature": i % 2, "seed": i, "max_tokens": 30}) for i in range(16)]
        schema = {"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"], "additionalProperties": False}
        asks[3][1]["response_format"] = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
        asks[3][1]["max_tokens"] = 100
        asks[5][1]["frequency_penalty"] = 0.7
        alone = [server.ask(text, **fields) for text, fields in asks]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            together = list(pool.map(lambda ask: server.ask(ask[0], **ask[1]), asks))
            self.assertEqual(together, alone)
            self.assertEqual(list(json.loads(alone[3][0])), ["n"])
            started = threading.Semaphore(0)
            long = [pool.submit(server.ask, "A story.", started.release, temperature=1, seed=i, max_tokens=1500, ignore_eos=True)
                    for i in range(8)]
            for _ in long:
                started.acquire()
            server.process.send_signal(signal.SIGTERM)
            finishes = [future.result()[1] for future in long]
        server.process.stderr.read()
        self.assertEqual(server.process.wait(timeout=60), 0)
        self.assertEqual(finishes, ["length"] * 8)

    def test_a_lost_gpu_ends_all_requests_and_the_server(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "now"
            lose_gpu = build("lose_gpu.cc", pathlib.Path(folder) / "liblose_gpu.so")
            server = Server(env={"LD_PRELOAD": lose_gpu, "LOSE_GPU_FILE": str(file)})
            started = threading.Semaphore(0)

            def ask(i):
                try:
                    return server.ask("A story.", started.release, temperature=1, seed=i, max_tokens=3000, ignore_eos=True)[1]
                except OSError:
                    return None  # closed in the middle

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                asks = [pool.submit(ask, i) for i in range(8)]
                for _ in asks:
                    started.acquire()
                file.touch()
                finishes = [future.result(timeout=60) for future in asks]
            said = server.process.stderr.read()
            self.assertEqual(server.process.wait(timeout=60), 1, said)
            self.assertNotIn("length", finishes)
            self.assertIn("the GPU was lost", said)


if __name__ == "__main__":
    if fathom("generate", *MODEL, "--device", "cuda:0", "--prompt", "hi", "--max-tokens", "1", "--quiet").returncode == 3:
        print("skipped: the program finds no GPU")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
