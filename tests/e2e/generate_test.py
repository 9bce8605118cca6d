"""fathom generate: one question."""
import json
import os
import re
import signal
import subprocess
import unittest

import program
from program import ProgramTest

GREEDY = ("--temperature", "0")


class Generate(ProgramTest):
    def test_answers_a_prompt(self):
        done = self.run_program("generate", "--prompt", "4 * 70", *GREEDY)
        self.assertEqual(done.stdout.decode(), "280\n")

    def test_tells_a_speed_only_where_an_answer_takes_its_time(self):
        ask = ("generate", "--prompt", "4 * 70", *GREEDY, "--seed", "5")
        long = self.run_program(*ask, "--ignore-eos", "--max-tokens", "900").stderr.decode()
        self.assertRegex(long, r"^\[prompt 9 tokens, first token after \d+ ms, 900 tokens at "
                               r"\d+\.\d tokens/s, seed 5\]\n$")
        # A step brings all three behind the first one, some microseconds after it where they wait together.
        short = self.run_program(*ask).stderr.decode()
        rate = re.fullmatch(r"\[prompt 9 tokens, first token after \d+ ms, 4 tokens(?: at (\S+) tokens/s)?, "
                            r"seed 5\]\n", short)
        self.assertTrue(rate, short)
        self.assertLessEqual(float(rate[1] or 0), 3 / 0.05)
        self.assertNotIn("tokens/s", self.run_program(*ask, "--max-tokens", "1").stderr.decode())
        # Of many answers, each has a first token that no time is counted for, however long all take.
        many = self.run_program(*ask, "--n", "128", "--max-batch", "1", "--max-tokens", "1").stderr.decode()
        self.assertIn("128 tokens, seed 5", many)

    def test_numerics(self):
        ask = ("generate", "--prompt", "4 * 70", *GREEDY, "--quiet", "--device", "cpu", "--numerics", "int8")
        self.assertEqual(self.text(*ask), "280\n")
        self.assertEqual(self.text(*ask, "--isa", "plain"), "280\n")

    def test_quiet_prints_the_answer_only(self):
        done = self.run_program("generate", "--prompt", "4 * 70", *GREEDY, "--quiet")
        self.assertEqual((done.stdout, done.stderr), (b"280\n", b""))

    def test_reads_the_prompt_from_standard_input_or_a_file(self):
        self.assertEqual(self.text("generate", *GREEDY, stdin="4 * 70\n"), "280\n")
        self.assertEqual(self.text("generate", *GREEDY, "--prompt", "-", stdin="4 * 70"), "280\n")
        file = self.write("prompt.txt", "4 * 70")
        self.assertEqual(self.text("generate", *GREEDY, "--file", file), "280\n")

    def test_result_has_the_documented_form(self):
        result = self.result("generate", "--prompt", "4 * 70", *GREEDY, "--seed", "5")
        self.assertEqual(list(result), ["id", "index", "text", "token_ids", "finish_reason", "seed",
                                        "usage", "timing", "memory"])
        self.assertEqual((result["text"], result["finish_reason"], result["seed"]), ("280", "stop", 5))
        self.assertEqual(result["token_ids"][-1], 1)
        usage = result["usage"]
        drafted, accepted = usage.pop("drafted"), usage.pop("accepted")
        self.assertEqual(usage, {"prompt_tokens": 9, "completion_tokens": 4, "cached_tokens": 0,
                                 "recomputed_tokens": 0})
        self.assertTrue(0 <= accepted <= drafted <= 5 * 4, (drafted, accepted))
        self.assertLessEqual(result["timing"]["ttft_ms"], result["timing"]["e2e_ms"])

    def test_drafts_change_the_number_of_steps_and_nothing_else(self):
        lines = []
        for i, params in enumerate([{}, {"temperature": 1.0, "seed": 5, "repetition_penalty": 1.2},
                                    {"max_draft": 0}, {"max_draft": 2, "min_tokens": 30}]):
            lines.append(json.dumps({"id": i, "prompt": "What is 12 plus 30?", "params": {
                "temperature": 0, "max_tokens": 60, "ignore_eos": True, "logprobs": 1, **params}}))
        file = self.write("drafts.jsonl", "\n".join(lines))

        def answers(*arguments, **variables):
            for name, value in variables.items():
                self.environment[name] = value
            text = self.text("generate", "--jsonl", file, "--out", "-", "--threads", "1", *arguments)
            for name in variables:
                del self.environment[name]
            results = [json.loads(line) for line in text.splitlines()]
            usage = [(r["usage"]["drafted"], r["usage"]["accepted"]) for r in results]
            return [(r["token_ids"], r["logprobs"]) for r in results], usage

        plain, usage = answers("--max-draft", "0")
        self.assertEqual(usage, [(0, 0)] * 4)
        for arguments in [("--draft-verify", "fixed"), ("--draft-verify", "fixed", "--max-draft", "2"),
                          ("--draft-verify", "fixed", "--no-async")]:
            said, usage = answers(*arguments)
            self.assertEqual(said, plain, arguments)
            self.assertEqual(usage[2], (0, 0))
            for i in (0, 1, 3):
                self.assertGreater(usage[i][1], 0, arguments)
                self.assertGreaterEqual(usage[i][0], usage[i][1], arguments)
        self.assertEqual(answers(DEEPINFER_USE_NEXTN_DECODE="0")[1], [(0, 0)] * 4)
        self.assertGreater(answers("--max-draft", "5", DEEPINFER_USE_NEXTN_DECODE="0",
                                   DEEPINFER_ENABLE_MTP_VARLEN="0")[1][0][1], 0)
        self.environment["DEEPINFER_USE_NEXTN_DECODE"] = "many"
        self.fails(2, "generate", *GREEDY, "--prompt", "4 * 70", says="DEEPINFER_USE_NEXTN_DECODE")
        del self.environment["DEEPINFER_USE_NEXTN_DECODE"]
        self.fails(2, "generate", "--prompt", "4 * 70", "--max-draft", "9", says="--max-draft")
        self.fails(2, "generate", "--prompt", "4 * 70", "--draft-verify", "x", says="fixed")

    def test_reference_kernels_give_the_golden_tokens(self):
        rows = sorted(program.golden_rows(), key=lambda row: len(row["ids"]))[:3]
        for mode in ("exact", "replay"):
            lines = [json.dumps({"id": row["id"], "prompt_token_ids": row["ids"]}) for row in rows]
            file = self.write("golden.jsonl", "\n".join(lines))
            out = self.text("generate", "--jsonl", file, "--isa", "reference", "--prefill", mode,
                            *GREEDY, "--ignore-eos", "--max-tokens", "24", "--quiet")
            for row, line in zip(rows, out.splitlines(), strict=True):
                self.assertEqual(json.loads(line)["token_ids"], row[mode]["numpy"]["greedy"][:24],
                                 (row["id"], mode))

    def test_raw_prompt_and_messages_give_the_golden_text(self):
        row = next(row for row in program.golden_rows() if row["id"] == "arith-002")
        self.assertEqual(self.text("generate", "--raw", "--prompt", row["prompt"], *GREEDY),
                         row["text"] + "\n")
        file = self.write("chat.json", '[{"role": "user", "content": "4 * 70"}]')
        self.assertEqual(self.text("generate", "--messages", file, *GREEDY), row["text"] + "\n")
        body = self.write("body.json", '{"model": "m", "messages": [{"role": "user", "content": '
                          '"4 * 70"}], "temperature": 0, "max_tokens": 2}')
        self.assertEqual(self.text("generate", "--messages", body), row["text"][:2] + "\n")
        ids = ",".join(map(str, row["ids"]))
        self.assertEqual(self.text("generate", "--prompt-ids", ids, *GREEDY), row["text"] + "\n")

    def test_seed_decides_the_answer_whatever_the_threads_and_chunks(self):
        ask = ("generate", "--prompt", "Tell me a story.", "--max-tokens", "40")
        first = self.result(*ask, "--seed", "7")
        again = self.result(*ask, "--seed", "7", "--threads", "1", "--chunk", "3")
        other = self.result(*ask, "--seed", "8")
        self.assertEqual(first["token_ids"], again["token_ids"])
        self.assertNotEqual(first["token_ids"], other["token_ids"])

    def test_a_drawn_seed_is_reported_and_repeats_the_answer(self):
        ask = ("generate", "--prompt", "Tell me a story.", "--max-tokens", "20")
        first = self.result(*ask)
        self.assertEqual(self.result(*ask, "--seed", first["seed"])["token_ids"], first["token_ids"])

    def test_n_answers_have_the_seeds_that_follow(self):
        ask = ("generate", "--prompt", "Name a fruit.", "--max-tokens", "8", "--json")
        lines = self.text(*ask, "--seed", "3", "--n", "3").splitlines()
        results = [json.loads(line) for line in lines]
        self.assertEqual([(r["index"], r["seed"]) for r in results], [(0, 3), (1, 4), (2, 5)])
        alone = json.loads(self.text(*ask, "--seed", "5"))
        self.assertEqual(results[2]["token_ids"], alone["token_ids"])

    def test_stop_string_ends_text_and_usage(self):
        whole = self.result("generate", "--prompt", "4 * 70", *GREEDY)
        cut = self.result("generate", "--prompt", "4 * 70", *GREEDY, "--stop", "0", "--stop", "zz")
        self.assertEqual((cut["text"], cut["finish_reason"]), ("28", "stop"))
        self.assertEqual(cut["token_ids"], whole["token_ids"][:3])
        self.assertEqual(cut["usage"]["completion_tokens"], 3)

    def test_max_tokens_and_ignore_eos(self):
        result = self.result("generate", "--prompt", "4 * 70", *GREEDY, "--ignore-eos",
                             "--max-tokens", "9")
        self.assertEqual((len(result["token_ids"]), result["finish_reason"]), (9, "length"))

    def test_logprobs_are_those_of_the_chosen_and_the_likeliest(self):
        result = self.result("generate", "--prompt", "4 * 70", *GREEDY, "--logprobs", "2")
        self.assertEqual(len(result["logprobs"]), len(result["token_ids"]))
        for entry, token in zip(result["logprobs"], result["token_ids"], strict=True):
            self.assertEqual(entry["token_id"], token)
            self.assertEqual(entry["top_logprobs"][0]["token_id"], token)
            self.assertEqual(len(entry["top_logprobs"]), 2)
            self.assertLessEqual(entry["logprob"], 0)

    def test_thinking_is_apart_from_the_text(self):
        result = self.result("generate", "--prompt", "hi", "--think", "high", *GREEDY)
        self.assertTrue(result["reasoning"])
        self.assertTrue(result["text"])
        self.assertNotIn("</think>", result["text"] + result["reasoning"])
        plain = self.text("generate", "--prompt", "hi", "--think", "high", *GREEDY)
        self.assertEqual(plain, f"<think>{result['reasoning']}</think>\n\n{result['text']}\n")

    def test_system_message_reaches_the_model(self):
        ask = ("generate", "--prompt", "4 * 70", *GREEDY)
        alone = self.result(*ask)["usage"]["prompt_tokens"]
        with_system = self.result(*ask, "--system", "Be brief.")["usage"]["prompt_tokens"]
        self.assertGreater(with_system, alone)

    def test_environment_gives_what_options_do_not(self):
        self.environment["FATHOM_ISA"] = "plain"
        self.environment["DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE"] = "off"
        self.assertEqual(self.text("generate", "--prompt", "4 * 70", *GREEDY), "280\n")
        self.environment["DEEPINFER_YOCO_PREFILL_TRUNCATION_MODE"] = "perhaps"
        self.fails(2, "generate", "--prompt", "hi", says="TRUNCATION_MODE=perhaps")
        self.text("generate", "--prompt", "4 * 70", "--prefill", "exact")

    def test_ctrl_c_stops_cleanly(self):
        process = subprocess.Popen(
            [program.settings.program, "generate", "--prompt", "Tell me a story.", "--ignore-eos",
             "--seed", "1", "--max-tokens", "16000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, env=self.environment)
        os.read(process.stdout.fileno(), 1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130, errors)

    def test_a_reader_that_leaves_ends_the_run_quietly(self):
        process = subprocess.Popen(
            [program.settings.program, "generate", "--prompt", "Tell me a story.", "--ignore-eos",
             "--seed", "1", "--max-tokens", "16000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, env=self.environment)
        os.read(process.stdout.fileno(), 1)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()
        self.assertEqual(process.wait(timeout=30), 0)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_full_disk_is_reported(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([program.settings.program, "generate", "--prompt", "hi"], stdout=full,
                                  stderr=subprocess.PIPE, env=self.environment, check=False)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr.decode().count("\n"), 1)


if __name__ == "__main__":
    program.main()
