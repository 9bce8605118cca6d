"""Peak memory: what was read of the weights, the caches, and little more."""
import json
import pathlib

import program
from program import ProgramTest

MORE = 200e6  # bytes beside weights and caches


def available_bytes():
    for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


class Memory(ProgramTest):
    def check(self, memory, more=MORE):
        self.assertGreater(memory["weights_bytes"], 0)
        self.assertGreater(memory["cache_bytes"], 0)
        self.assertGreater(memory["peak_bytes"], memory["weights_bytes"])
        self.assertLessEqual(memory["peak_bytes"], memory["weights_bytes"] + memory["cache_bytes"] + more)

    def test_an_answer_of_the_demo_model(self):
        info = self.result("info")["model"]
        one = self.result("generate", "--prompt", "4 * 70", "--temperature", "0")["memory"]
        self.check(one, more=60e6)
        self.assertLess(one["weights_bytes"], info["bytes"])
        # A long prompt, and a batch of answers: caches grow, what is beside them hardly does.
        words = self.write("long.txt", "word " * 8000)
        many = self.result_lines("generate", "--file", words, "--n", "8", "--ignore-eos",
                                 "--max-tokens", "40", "--seed", "1")[-1]["memory"]
        self.check(many, more=100e6)
        self.assertGreater(many["cache_bytes"], one["cache_bytes"])

    def result_lines(self, *arguments):
        return [json.loads(line) for line in self.text(*arguments, "--json").splitlines()]

    def test_prefill_at_the_widths_of_the_release(self):
        if available_bytes() < 8e9:
            self.skipTest("skipped: less than 8 GB of memory available")
        self.text("bench", "prefill", "--layers", "4", "--experts", "6", "--tokens", "32", "--json", "out.json")
        report = json.loads((self.folder / "out.json").read_text())
        self.check(report["memory"])
        self.assertGreater(report["memory"]["weights_bytes"], 2e9)


if __name__ == "__main__":
    program.main()
