"""fathom info, tokenize and eval."""
import json
import math
import pathlib
import re

import program
from program import ProgramTest


class Info(ProgramTest):
    def test_json(self):
        info = self.result("info")
        model = info["model"]
        self.assertEqual((model["layers"], model["vocab_size"], model["context"]), (12, 4096, 16384))
        self.assertEqual(sum(p["bytes"] for n, p in model["parts"].items() if n != "total"),
                         model["parts"]["total"]["bytes"])
        self.assertEqual(model["parts"]["total"]["bytes"], model["bytes"])
        self.assertEqual([r["role"] for r in model["layer_roles"]][:4], ["window", "window", "full", "reuse"])
        self.assertGreater(model["kv_bytes_per_token"], 0)
        self.assertGreater(model["state_bytes"], 0)
        decode, speed = info["decode"], info["machine"]["read_bytes_per_s"]
        self.assertTrue(math.isclose(decode["floor_s"], decode["bytes_per_token"] / speed, rel_tol=1e-6))

    def test_huge_pages_are_what_the_kernel_says(self):
        setting = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
        mode = setting.read_text().split("[")[1].split("]")[0] if setting.exists() else ""
        self.assertEqual(self.result("info")["machine"]["huge_pages"], mode)
        text = self.text("info", program.settings.root / "models/demo")
        self.assertEqual("huge pages" in text, mode == "never")

    def test_memory_nodes_are_those_that_the_kernel_allows(self):
        status = pathlib.Path("/proc/self/status").read_text()
        allowed = re.search(r"Mems_allowed_list:\s*(\S+)", status)[1]
        ends = [part.split("-") for part in allowed.split(",")]
        self.assertEqual(self.result("info")["machine"]["memory_nodes"],
                         sum(int(end[-1]) - int(end[0]) + 1 for end in ends))

    def test_text_names_what_matters(self):
        text = self.text("info", program.settings.root / "models/demo")
        for word in ("26.8 M", "experts", "reindex", "bytes a token", "a sequence", "--isa", "floor"):
            self.assertIn(word, text)


class Tokenize(ProgramTest):
    def test_round_trip(self):
        text = "Grüße, 世界! 🙂 <｜User｜>  x\n\ty 1234"
        for special in ([], ["--special"]):
            ids = self.result("tokenize", *special, stdin=text)["ids"]
            back = self.result("tokenize", "--decode", *special, *ids)["text"]
            self.assertEqual(back, text)

    def test_control_tokens_count_only_when_asked(self):
        self.assertEqual(self.result("tokenize", "--special", "<｜User｜>")["ids"], [4068])
        self.assertGreater(len(self.result("tokenize", "<｜User｜>")["ids"]), 1)

    def test_plain_output_and_sources(self):
        lines = self.text("tokenize", "Hello, world").splitlines()
        self.assertEqual([line.split("\t")[1] for line in lines], ['"Hello"', '","', '" world"'])
        file = self.write("text.txt", "Hello, world")
        self.assertEqual(self.text("tokenize", "--file", file).splitlines(), lines)
        tokenizer = program.settings.root / "models/demo/tokenizer.json"
        self.assertEqual(self.text("tokenize", "--tokenizer", tokenizer, "Hello,", "world").splitlines(), lines)
        ids = ",".join(line.split("\t")[0] for line in lines)
        self.assertEqual(self.text("tokenize", "--decode", ids), "Hello, world\n")

    def test_wrong_input(self):
        self.fails(2, "tokenize", stdin=b"\xff", says="UTF-8")
        self.fails(2, "tokenize", "--decode", "7,x", says="1,2,3")
        self.fails(2, "tokenize", "--decode", "5000", says="5000")
        self.fails(2, "tokenize", "--file", "absent", says="absent")


class Calibrate(ProgramTest):
    def test_writes_temperatures_beside_the_model_that_change_no_answer(self):
        model = self.folder / "model"
        model.mkdir()
        for file in (program.settings.root / "models/demo").iterdir():
            (model / file.name).symlink_to(file)
        questions = program.settings.root / "tests/data/demo/eval.jsonl"
        self.environment["XDG_CACHE_HOME"] = str(self.folder / "cache")
        ask = ("generate", "--model", model, "--prompt", "4 * 70", "--temperature", "0", "--logprobs", "1")
        before = self.result(*ask)
        table = self.text("calibrate", "--model", model, "--text", questions, "--prompts", "40")
        self.assertIn("position", table)
        file = model / "draft_calibration.json"
        written = json.loads(file.read_text())
        self.assertEqual(len(written["temperatures"]), 5)
        for temperature, position in zip(written["temperatures"], written["positions"]):
            self.assertTrue(0.05 <= temperature <= 20, written)
            self.assertTrue(0 < position["survived"] <= position["outcomes"], written)
        self.assertEqual(len(list(self.folder.glob("cache/fathom/cost/*.txt"))), 1)
        after = self.result(*ask)
        self.assertEqual((after["token_ids"], after["logprobs"]), (before["token_ids"], before["logprobs"]))
        for bad in ("", "[]", '{"temperatures": [0]}', '{"temperatures": [1, "x"]}', '{"temperatures": 1}'):
            file.write_text(bad)
            self.fails(3, *ask, says="draft_calibration.json")
        file.unlink()
        self.fails(2, "calibrate", "--model", model, says="--text")
        self.fails(2, "calibrate", "--model", model, "--text", questions, "--max-draft", "0", says="--max-draft 0")


class Eval(ProgramTest):
    def setUp(self):
        super().setUp()
        lines = (program.settings.root / "tests/data/demo/eval.jsonl").read_text(encoding="utf-8").splitlines()
        self.items = [json.loads(line) for line in lines]

    def test_scores_by_category_and_skips_images(self):
        wanted = {"json": 3, "facts": 3, "image": 2}
        chosen = [i for c, n in wanted.items() for i in [x for x in self.items if x["category"] == c][:n]]
        file = self.write("set.jsonl", "\n".join(map(json.dumps, chosen)))
        report = self.result("eval", "--set", file, "--out", "answers.jsonl")
        self.assertEqual(report["accuracy"]["image"], {"correct": 0, "total": 0, "skipped": 2})
        self.assertEqual([report["accuracy"][c]["total"] for c in ("json", "facts")], [3, 3])
        self.assertGreaterEqual(report["total"]["correct"], 4)
        answers = [json.loads(line) for line in (self.folder / "answers.jsonl").read_text("utf-8").splitlines()]
        self.assertEqual(len(answers), 6)
        self.assertEqual(sum(a["correct"] for a in answers), report["total"]["correct"])
        some = self.result("eval", "--set", file, "--category", "json", "--limit", "1")
        self.assertEqual(some["total"]["total"], 1)
        fixed = self.result("eval", "--set", file, "--draft-verify", "fixed")
        self.assertEqual(fixed["accuracy"], report["accuracy"])
        self.assertGreater(fixed["drafts"]["mean_accepted_length"], 2)
        self.assertEqual(len(fixed["drafts"]["accepted_at"]), 5)

    def item(self, check, value, **more):
        request = {"messages": [], "thinking": {"type": "disabled"}}
        request.update(more)
        return {"id": "x", "category": "c", "request": request, "reference": "280",
                "prompt": "<｜begin▁of▁sentence｜><｜User｜>4 * 70<｜Assistant｜></think>",
                "expected": {"check": check, "value": value}}

    def correct(self, *item, **more):
        file = self.write("set.jsonl", json.dumps(self.item(*item, **more)))
        return self.result("eval", "--set", file)["total"]["correct"] == 1

    def test_checks_compare_as_documented(self):
        self.assertTrue(self.correct("exact", " 280\n"))
        self.assertFalse(self.correct("exact", "28"))
        self.assertTrue(self.correct("contains", ["28", "0"]))
        self.assertFalse(self.correct("contains", ["28", "1"]))
        self.assertTrue(self.correct("json_equal", 280))
        self.assertFalse(self.correct("json_equal", 280.0))
        self.assertFalse(self.correct("json_equal", True))
        self.assertTrue(self.correct("tool_call_equal", []))
        self.assertFalse(self.correct("exact", "280", thinking={"type": "enabled"}))

    def test_perplexity(self):
        text = (program.settings.root / "tests/data/demo/heldout.txt").read_text(encoding="utf-8")
        file = self.write("text.txt", text[:1500])
        one = self.result("eval", "--perplexity", file, "--chunk", "7")
        other = self.result("eval", "--perplexity", file)
        self.assertEqual(one, other)
        self.assertEqual(one["tokens"], len(self.result("tokenize", "--file", file)["ids"]))
        self.assertTrue(5 < one["perplexity"] < 200, one)
        # Its first words, from the probabilities that generate reports.
        ids = self.result("tokenize", "--file", file)["ids"][:2]
        loss = 0
        for known in ([0], [0, ids[0]]):
            asked = self.result("generate", "--prompt-ids", ",".join(map(str, known)), "--prefill", "exact",
                                "--max-tokens", "1", "--logprobs", "4096", "--temperature", "0")
            top = {t["token_id"]: t["logprob"] for t in asked["logprobs"][0]["top_logprobs"]}
            loss -= top[ids[len(known) - 1]]
        two = self.result("eval", "--perplexity", file, "--limit", "2")
        self.assertEqual(two["tokens"], 2)
        self.assertTrue(math.isclose(two["perplexity"], math.exp(loss / 2), rel_tol=1e-4), (two, loss))
        # The model must find its own words likelier than noise.
        noise = self.write("noise.txt", text[:1500][::-1])
        self.assertGreater(self.result("eval", "--perplexity", noise)["perplexity"], 3 * one["perplexity"])

    def test_wrong_input(self):
        self.fails(2, "eval", says="--set")
        self.fails(2, "eval", "--set", "absent", says="absent")
        self.fails(2, "eval", "--set", self.write("a", "{}"), says="line 1")
        self.fails(2, "eval", "--set", self.write("b", ""), says="no questions")
        self.fails(2, "eval", "--perplexity", self.write("c", ""), says="empty")
        self.fails(2, "eval", "--perplexity", self.write("d", b"\xff"), says="UTF-8")


if __name__ == "__main__":
    program.main()
