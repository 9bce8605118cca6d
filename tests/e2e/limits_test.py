"""Options that limit what an answer is made of, on the command line and in lines of --jsonl."""
import json
import re
import unittest

import program

GREEDY = ("--temperature", "0")
PROMPT = ("--prompt", "4 * 70")
EOS = 1


class LimitsTest(program.ProgramTest):
    def ids(self, *arguments):
        return self.result("generate", *PROMPT, *GREEDY, *arguments)["token_ids"]

    def test_min_tokens_keep_the_answer_going(self):
        self.assertEqual(len(self.ids()), 4)
        longer = self.ids("--min-tokens", "12", "--max-tokens", "30")
        self.assertGreaterEqual(len(longer), 13)
        self.assertNotIn(EOS, longer[:12])

    def test_stop_ids_end_it_and_allowed_ids_make_it(self):
        two = self.ids()[0]
        self.assertEqual(self.ids("--stop-ids", f"{two},5"), [two])
        only = self.ids("--allowed-ids", "40,41,42", "--max-tokens", "9")
        self.assertLessEqual(set(only), {40, 41, 42})
        self.assertEqual(len(only), 9)

    def test_bad_words_are_not_written(self):
        self.assertEqual(self.text("generate", *PROMPT, *GREEDY), "280\n")
        result = self.result("generate", *PROMPT, *GREEDY, "--bad-words", "280", "--max-tokens", "20")
        self.assertNotIn("280", result["text"])
        first = self.ids()[0]
        self.assertNotEqual(self.ids("--logit-bias", f"{first}:-100")[0], first)

    def test_forced_ids_begin_the_answer(self):
        forced = self.ids("--forced-ids", "40,41,42", "--max-tokens", "5")
        self.assertEqual(forced[:3], [40, 41, 42])

    def test_prompt_logprobs_have_an_entry_a_token(self):
        result = self.result("generate", "--prompt-ids", "0,19,280,4", *GREEDY, "--prompt-logprobs", "2",
                             "--max-tokens", "2")
        entries = result["prompt_logprobs"]
        self.assertIsNone(entries[0])
        self.assertEqual([e["token_id"] for e in entries[1:]], [19, 280, 4])
        for entry in entries[1:]:
            self.assertEqual(len(entry["top_logprobs"]), 2)
            self.assertLessEqual(entry["logprob"], 0)

    def test_the_same_names_work_in_lines(self):
        params = [{}, {"min_tokens": 12, "max_tokens": 30}, {"allowed_ids": [40, 41], "max_tokens": 6},
                  {"bad_words": ["280", [7, 8]], "max_tokens": 20}, {"forced_ids": [40], "max_tokens": 3},
                  {"stop_ids": [40], "forced_ids": [39, 40]}, {"priority": -3, "cache_salt": "a"},
                  {"timeout_s": 60, "prompt_logprobs": 0, "n": 2}]
        file = self.write("in.jsonl", "\n".join(
            json.dumps({"id": i, "prompt": "4 * 70", "params": p}) for i, p in enumerate(params)))
        lines = [json.loads(line) for line in
                 self.text("generate", "--jsonl", file, *GREEDY, "--quiet").splitlines()]
        answers = {(line["id"], line["index"]): line for line in lines}
        self.assertEqual(len(answers), 9)
        self.assertEqual(answers[0, 0]["text"], "280")
        self.assertGreaterEqual(len(answers[1, 0]["token_ids"]), 13)
        self.assertLessEqual(set(answers[2, 0]["token_ids"]), {40, 41})
        self.assertNotIn("280", answers[3, 0]["text"])
        self.assertEqual(answers[4, 0]["token_ids"][0], 40)
        self.assertEqual(answers[5, 0]["token_ids"], [39, 40])
        self.assertEqual(answers[5, 0]["finish_reason"], "stop")
        self.assertEqual(answers[6, 0]["text"], "280")
        self.assertEqual(len(answers[7, 0]["prompt_logprobs"]), answers[7, 0]["usage"]["prompt_tokens"])
        self.assertNotIn("prompt_logprobs", answers[7, 1])

    def test_wrong_values_are_refused_by_name(self):
        for arguments, says in ((("--min-tokens", "-1"), "--min-tokens"),
                                (("--min-tokens", "9", "--max-tokens", "8"), "min_tokens is 9"),
                                (("--allowed-ids", "1,x"), "--allowed-ids"),
                                (("--allowed-ids", "99999999"), "allowed_ids is 99999999"),
                                (("--stop-ids", "99999999"), "stop token 0 is 99999999"),
                                (("--logit-bias", "7"), "ID:BIAS"),
                                (("--logit-bias", "7:101"), "ID:BIAS"),
                                (("--bad-words", "  "), "bad word"),
                                (("--timeout-s", "0"), "--timeout-s")):
            self.fails(2, "generate", *PROMPT, *GREEDY, *arguments, says=says)
        # One bad line says so, the others are answered.
        file = self.write("in.jsonl", '{"prompt": "4 * 70"}\n{"prompt": "4 * 70", "params": '
                          '{"bad_words": "x"}}\n{"prompt": "4 * 70", "params": {"timeout_s": -1}}')
        done = self.run_program("generate", "--jsonl", file, *GREEDY, "--quiet", code=1)
        lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
        self.assertEqual(lines[0]["text"], "280")
        self.assertIn("bad_words", lines[1]["error"]["message"])
        self.assertIn("timeout_s", lines[2]["error"]["message"])

    def test_a_time_limit_ends_the_answer_with_its_own_error(self):
        done = self.run_program("generate", *PROMPT, "--timeout-s", "0.05", "--ignore-eos", "--max-tokens",
                                "900", "--json", code=1)
        result = json.loads(done.stdout)
        self.assertEqual(result["finish_reason"], "error")
        self.assertIn("time limit", result["error"]["message"])

    def test_prefix_cache_modes(self):
        prompt = " ".join(f"{i} and {i * 7}" for i in range(90))
        lines = [{"id": i, "prompt": prompt + more} for i, more in enumerate([" a", " a b c", " a b c d"])]
        file = self.write("in.jsonl", "\n".join(map(json.dumps, lines)))

        def run(mode):
            out = self.text("generate", "--jsonl", file, *GREEDY, "--quiet", "--max-batch", "1",
                            "--max-tokens", "12", "--prefix-cache", mode)
            return [json.loads(line) for line in out.splitlines()]
        off, on, replay = run("off"), run("on"), run("replay")
        self.assertEqual([a["usage"]["cached_tokens"] for a in off], [0, 0, 0])
        self.assertEqual([a["token_ids"] for a in on], [a["token_ids"] for a in off])
        for answers in (on, replay):
            for answer in answers[1:]:
                self.assertGreaterEqual(answer["usage"]["cached_tokens"], 256)
                self.assertEqual(answer["usage"]["cached_tokens"] % 128, 0)
                most = answer["usage"]["cached_tokens"] if answers is on else 64  # the demo's window
                self.assertLessEqual(answer["usage"]["recomputed_tokens"], most)
        self.fails(2, "generate", *PROMPT, "--prefix-cache", "sometimes", says="on, replay or off")

    def test_a_latency_target_measures_steps_once_and_changes_no_token(self):
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "cache")
        target = ("--step-latency-target-ms", "5", "--chunk", "64")
        ask = ("generate", *PROMPT, *GREEDY, *target)
        says = b"fathom: measuring what steps cost"
        told = self.run_program(*ask)
        self.assertEqual((told.stdout, told.stderr.count(says)), (b"280\n", 1))
        tables = list(self.folder.glob("cache/fathom/cost/*.txt"))
        self.assertEqual(len(tables), 1)
        first = tables[0].read_text()
        self.assertEqual(first.count("\nchunk "), 7)  # 1, 2, 4 ... 64 rows
        self.assertGreater(first.count("\ndecode 256 "), 5)
        quiet = re.sub(r"\nload .*", "\nload 0", first)  # whatever this machine does meanwhile
        tables[0].write_text(quiet)
        told = self.run_program(*ask)
        self.assertEqual((told.stdout, told.stderr.count(says)), (b"280\n", 0))
        self.assertEqual(tables[0].read_text(), quiet)
        tables[0].write_text("damaged")  # it is measured again
        told = self.run_program(*ask, "--quiet")
        self.assertEqual((told.stdout, told.stderr), (b"280\n", b""))
        self.assertEqual(tables[0].read_text().count("\nchunk "), 7)
        tables[0].write_text(re.sub(r"\nload .*", "\nload 1e6", first))  # of a busier machine
        told = self.run_program(*ask)
        self.assertEqual((told.stdout, told.stderr.count(b"it was busy")), (b"280\n", 1))
        self.assertNotIn("1e6", tables[0].read_text())
        self.fails(2, "generate", *PROMPT, "--step-latency-target-ms", "x", says="--step-latency-target-ms")


if __name__ == "__main__":
    program.main()
