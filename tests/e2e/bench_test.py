"""fathom bench on the demo model: rows, conditions, plots."""
import json
import resource
import signal
import subprocess
import time
import xml.etree.ElementTree

import program
from program import ProgramTest

CONDITIONS = ("kind", "model", "mode", "drafts", "acceptance", "routing", "prefix_cache", "chunk", "numerics",
              "isa", "threads", "cpu", "cpus", "commit", "version", "time", "command")


class Bench(ProgramTest):
    def bench(self, *arguments):
        done = self.run_program("bench", *arguments, "--json", "-")
        report = json.loads(done.stdout)
        self.assertGreater(len(report["rows"]), 0)
        for row in report["rows"]:
            self.assertGreater(row["value"], 0, row)
            if row["floor"] > 0:
                self.assertAlmostEqual(row["ratio"], row["floor"] / row["value"], places=9)
        for peak in ("dram_read_gb_s", "int8_gop_s", "fp32_gflop_s"):
            self.assertGreater(report["peaks"][peak], 0)
        self.assertGreater(report["memory"]["peak_bytes"], report["memory"]["weights_bytes"])
        self.assertIn(report["rows"][0]["name"], done.stderr.decode())  # the table, for people
        return report, {row["name"]: row for row in report["rows"]}

    def test_throughput(self):
        report, rows = self.bench("throughput", "--requests", "6", "--tokens", "8", "--tokens", "20",
                                  "--output", "5", "--batch", "1", "--batch", "3")
        self.assertEqual(list(rows), ["throughput.b1", "throughput.b3"])
        for row in rows.values():
            self.assertEqual((row["requests"], row["prompt_tokens"], row["output_tokens"]), (6, 84, 30))
            self.assertLess(abs(row["output_tokens_per_s"] - 30 / row["value"]), 1e-6)
            self.assertLessEqual(row["ttft_p50_ms"], row["ttft_p99_ms"])
            self.assertGreater(row["itl_p50_ms"], 0)
        self.assertEqual(rows["throughput.b1"]["speedup"], 1)
        self.assertGreaterEqual(rows["throughput.b1"]["steps"], rows["throughput.b3"]["steps"])
        for name in CONDITIONS:
            self.assertIn(name, report["setup"])
        self.assertIn("bench throughput --requests 6", report["setup"]["command"])

    def test_a_signal_ends_layers_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            bench = subprocess.Popen([program.settings.program, "bench", "decode", "--shape", "demo"], cwd=self.folder,
                                     env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(bench.kill)
            time.sleep(1)
            bench.send_signal(number)
            self.assertEqual(bench.wait(timeout=3), 130)

    def test_drafts(self):
        questions = program.settings.root / "tests/data/demo/eval.jsonl"
        report = json.loads(self.text("bench", "drafts", "--prompts", questions, "--batch", "8", "--output", "8",
                                      "--draft-verify", "fixed", "--json", "-"))
        row = report["rows"][0]
        self.assertEqual(row["name"], "drafts.b8")
        self.assertGreater(row["speedup"], 0)
        self.assertTrue(1 < row["mean_accepted_length"] <= 6, row)
        self.assertTrue(0 < row["accepted"] <= row["verified"] <= row["drafted"], row)
        self.assertTrue(0 < row["acceptance_1"] <= 1, row)
        self.assertEqual((report["setup"]["drafts"], report["setup"]["draft_verify"]), (5, "fixed"))
        self.fails(2, "bench", "drafts", "--max-draft", "0", says="--max-draft 0")

    def test_drafts_of_a_given_acceptance(self):
        for chance, length in (("0", (1, 1)), ("1", (4.5, 6))):
            report = json.loads(self.text("bench", "drafts", "--batch", "2", "--output", "24", "--requests", "2", "--pairs", "2",
                                          "--draft-verify", "fixed", "--acceptance", chance, "--json", "-"))
            row = report["rows"][0]
            self.assertTrue(length[0] <= row["mean_accepted_length"] <= length[1], row)
            self.assertEqual(row["acceptance_1"], float(chance))
            self.assertEqual(row["byte_gain"] > 1, chance == "1")
            self.assertTrue(report["setup"]["acceptance"].startswith("set to " + chance), report["setup"])
        self.fails(2, "bench", "drafts", "--acceptance", "1.5", says="a number from 0 to 1")
        self.fails(2, "bench", "decode", "--acceptance", "1", says="is not an option of bench decode")

    def test_latency(self):
        text = self.write("text.txt", "The river runs past the green house. " * 20)
        report, rows = self.bench("latency", "--tokens", "70", "--batch", "2", "--output", "4",
                                  "--prompts", text, "--prefill", "exact", "--threads", "1")
        self.assertEqual(list(rows), ["latency.p70.b2.ttft", "latency.p70.b2.itl"])
        for row in rows.values():
            self.assertTrue(row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"])
            self.assertGreater(row["floor"], 0)
        self.assertEqual((report["setup"]["mode"], report["setup"]["threads"]), ("exact", 1))

    def test_sweep_and_its_plots(self):
        _, rows = self.bench("sweep", "--tokens", "40", "--tokens", "90", "--concurrency", "1", "--concurrency", "2",
                             "--batch", "1", "--batch", "2", "--context", "20", "--output", "6",
                             "--svg", "sweep.svg", "--html", "sweep.html")
        self.assertEqual(list(rows), ["sweep.prefill.40.c1", "sweep.prefill.40.c2", "sweep.prefill.90.c1",
                                      "sweep.prefill.90.c2", "sweep.decode.b1", "sweep.decode.b2"])
        svg = (self.folder / "sweep.svg").read_text(encoding="utf-8")
        texts = ["".join(t.itertext()) for t in xml.etree.ElementTree.fromstring(svg).iter()
                 if t.tag.endswith("}text")]
        for words in ("Prefill: throughput against latency", "time to first token, p50, ms", "prompt tokens/s",
                      "Decode: throughput against speed of a user", "tokens/s of one user", "c1", "c2", "b1", "b2",
                      "prompts of 40 tokens (c: prompts at a time)"):
            self.assertIn(words, texts)
        self.assertTrue(any("commit" in t for t in texts))
        html = (self.folder / "sweep.html").read_text(encoding="utf-8")
        self.assertIn("<svg", html)
        for row in rows:
            self.assertIn(row, html)
        for word in ("http://", "https://", "<script", "src=", "@import"):
            self.assertNotIn(word, html.replace("http://www.w3.org/2000/svg", ""))

    def test_agent(self):
        report, rows = self.bench("agent", "--conversations", "2", "--turns", "4", "--output", "6")
        self.assertEqual(list(rows), ["agent.cache_on", "agent.cache_replay", "agent.cache_off"])
        on, replay, off = rows.values()
        for row in rows.values():
            self.assertEqual((row["requests"], row["output_tokens"]), (8, 48))
            self.assertLessEqual(row["ttft_p50_ms"], row["ttft_p90_ms"])
        self.assertEqual(on["prompt_tokens"], off["prompt_tokens"])  # a hit never changes a bit
        self.assertEqual((off["hit_rate"], off["cached_tokens"]), (0, 0))
        self.assertGreater(on["hit_rate"], 0.4)
        self.assertGreater(replay["hit_rate"], 0.4)
        self.assertLess(on["computed_tokens"], off["computed_tokens"])
        self.assertEqual((report["setup"]["conversations"], report["setup"]["turns"]), (2, 4))

    def test_layers_of_a_checkpoint_as_it_is_released(self):
        # No file of Engram classes, and so little room that decoding has to begin again.
        model = self.demo_of_context(600)
        report, rows = self.bench("decode", "--model", model, "--batch", "1", "--threads", "1")
        self.assertEqual(report["setup"]["shape"], str(model))
        self.assertGreater(rows["decode.layers.b1"]["calls"], 400)
        self.fails(2, "bench", "draft", "--model", self.demo_of_context(400), says=("400 tokens", "512"))

    def demo_of_context(self, tokens):
        model = self.folder / f"context_{tokens}"
        model.mkdir()
        for file in (program.settings.root / "models/demo").iterdir():
            if file.name not in ("engram_map.bin", "config.json"):
                (model / file.name).symlink_to(file)
        config = json.loads((program.settings.root / "models/demo/config.json").read_text())
        config["text_config"]["max_position_embeddings"] = tokens
        (model / "config.json").write_text(json.dumps(config))
        return model

    def test_profile_by_operation(self):
        report, rows = self.bench("decode", "--shape", "demo", "--batch", "1", "--profile", "--numerics", "int8",
                                  "--isa", "plain", "--threads", "1")
        self.assertEqual((report["setup"]["numerics"], report["setup"]["isa"]), ("int8", "plain"))
        self.assertNotIn("profile", rows["decode.head.b1"])
        profile = rows["decode.layers.b1"]["profile"]
        operations = {line["op"]: line for line in profile["operations"]}
        self.assertGreater(operations["linear.int8_plain fp8"]["fp8_ops"], 0)
        self.assertGreater(operations["moe_experts.int8_plain"]["fp4_ops"], 0)
        times = [line["seconds"] for line in profile["operations"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertLessEqual(sum(times), profile["seconds"])
        self.assertTrue(0 < profile["share_of_the_rest"] < 1)

    def test_a_wrong_model_is_said_before_the_machine_is_measured(self):
        def cpu_seconds():
            use = resource.getrusage(resource.RUSAGE_CHILDREN)
            return use.ru_utime + use.ru_stime
        for kind in ("decode", "throughput", "latency", "sweep", "drafts"):
            before = cpu_seconds()
            self.fails(3, "bench", kind, "--model", "/absent", says="/absent")
            self.assertLess(cpu_seconds() - before, 0.4, kind)

    def test_without_amx_nothing_is_said_of_it(self):
        table = self.text("bench", "prefill", "--shape", "demo", "--tokens", "16", "--isa", "plain")
        self.assertIn("tokens_per_s", table)
        self.assertEqual("amx_ratio" in table, "(AMX" in table)

    def test_wrong_use(self):
        self.fails(2, "bench", says="kind")
        self.fails(2, "bench", "decode", "--turns", "3", says=("--turns", "bench decode"))
        self.fails(2, "bench", "prefill", "--prefix-cache", "off", says="--prefix-cache")
        self.fails(2, "bench", "decode", "--model", "models/demo", "--layers", "4", says=("--layers", "checkpoint"))
        self.fails(3, "bench", "prefill", "--model", "/absent", says=("/absent", "no such folder"))
        self.fails(2, "bench", "throughput", "--svg", "x.svg", says="--svg")
        self.fails(2, "bench", "throughput", "--profile", says="--profile")
        self.fails(2, "bench", "throughput", "--shape", "demo", says="--shape")
        self.fails(2, "bench", "sweep", "--max-batch", "3", says="--max-batch")
        for option in ("--requests", "--output", "--tokens", "--batch"):
            for value in ("0", "-1", "x", "99999999999", ""):
                self.fails(2, "bench", "throughput", option, value, says=option)
        self.fails(3, "bench", "throughput", "--model", "/no/such", says="/no/such")
        self.fails(2, "bench", "latency", "--prompts", "absent.txt", "--tokens", "4", says="absent.txt")


class TooLong(ProgramTest):
    def test_what_does_not_fit_is_said_before_it_runs(self):
        done = self.run_program("bench", "latency", "--tokens", "16380", "--output", "100", code=2)
        self.assertIn("16384", done.stderr.decode())
        done = self.run_program("bench", "prefill", "--shape", "demo", "--tokens", "20000", code=2)
        self.assertIn("16384", done.stderr.decode())


if __name__ == "__main__":
    program.main()
