"""Wrong use: one clear line, the right exit code, nothing left behind."""
import os
import subprocess

import program
from program import ProgramTest

COMMANDS = ("generate", "chat", "info", "tokenize", "eval", "bench")


class Usage(ProgramTest):
    def test_help_of_each_command_teaches_with_an_example(self):
        for command in COMMANDS:
            text = self.text(command, "--help")
            self.assertIn("Example", text)
            self.assertIn(f"fathom {command}", text)
        overview = self.text("--help")
        for command in COMMANDS:
            self.assertIn(command, overview)
        self.assertEqual(self.text(), overview)

    def test_version(self):
        self.assertRegex(self.text("--version"), r"^fathom \d+\.\d+\.\d+\n$")

    def test_unknown_words(self):
        self.fails(2, "frobnicate", says="frobnicate")
        self.fails(2, "generate", "--frobnicate", says=("--frobnicate", "fathom generate --help"))
        self.fails(2, "generate", "--prompt", says="--prompt")
        self.fails(2, "bench", "sideways", says="sideways")

    def test_numbers_that_make_no_sense(self):
        for option in ("--threads", "--max-batch", "--chunk", "--max-tokens", "--n"):
            for value in ("0", "-1", "1000000000000000000", "99999999999999999999999", "x", "1.5", ""):
                self.fails(2, "generate", "--prompt", "hi", option, value, says=option)
        for value in ("0", "-1", "1000000000000000000", "x", "5X", "1Zi", "", "M"):
            self.fails(2, "generate", "--prompt", "hi", "--kv-memory", value, says="--kv-memory")
        for option, values in {"--temperature": ("-1", "nan", "inf", "hot"), "--top-p": ("0", "1.5"),
                               "--min-p": ("-0.1", "2"), "--top-k": ("-1",), "--seed": ("-1", "x"),
                               "--repetition-penalty": ("0",), "--presence-penalty": ("3",),
                               "--frequency-penalty": ("-3",), "--logprobs": ("-1", "5000")}.items():
            for value in values:
                self.fails(2, "generate", "--prompt", "hi", option, value)

    def test_names_that_do_not_exist(self):
        self.fails(2, "generate", "--prompt", "hi", "--isa", "mmx", says="mmx")
        self.fails(2, "generate", "--prompt", "hi", "--prefill", "half", says="half")
        self.fails(2, "generate", "--prompt", "hi", "--think", "much", says="much")
        self.fails(2, "generate", "--prompt", "hi", "--device", "gpu", says="cuda")
        self.fails(3, "generate", "--prompt", "hi", "--device", "cuda:99", says="--device cuda:99")
        self.fails(3, "info", "--device", "cuda:99", says="--device cuda:99")
        self.fails(2, "generate", "--prompt", "hi", "--experts-in", "disk", says=("--experts-in", "hbm or host"))
        self.fails(2, "generate", "--prompt", "hi", "--engram-in", "disk", says=("--engram-in", "hbm or host"))
        self.fails(2, "generate", "--prompt", "hi", "--numerics", "fast", says="fast")
        self.environment["FATHOM_ISA"] = "mmx"
        self.fails(2, "generate", "--prompt", "hi", says="mmx")

    def test_too_much_memory_for_the_machine(self):
        self.fails(2, "generate", "--prompt", "hi", "--kv-memory", "1000T", says="this machine's memory")

    def test_too_little_kv_memory(self):
        self.fails(4, "generate", "--prompt", "hi", "--kv-memory", "10", says="--kv-memory")

    def test_prompts_that_cannot_be_answered(self):
        self.fails(2, "generate", "--prompt", "", says="empty")
        self.fails(2, "generate", stdin="", says="empty")
        self.fails(2, "generate", "--raw", "--prompt", "", says="empty")
        self.fails(2, "generate", stdin=b"a\xff\xfe", says=("UTF-8", "byte 1"))
        self.fails(2, "generate", "--prompt", os.fsdecode(b"a\xe4b"), says="UTF-8")
        self.fails(2, "generate", stdin="word " * 20000, says="16384")
        self.fails(2, "generate", "--prompt", "hi", "--max-tokens", "20000", says="16384")
        self.fails(2, "generate", "--file", "absent.txt", says="absent.txt")
        self.fails(2, "generate", "--file", self.folder, says="cannot read")
        self.fails(2, "generate", "--prompt", "a", "--file", "b", says="together")
        self.fails(2, "generate", "--prompt-ids", "1,x", says="1,2,3")
        self.fails(2, "generate", "--prompt-ids", "4096", says="4095")
        self.fails(2, "generate", "--prompt-ids", "", says="empty")
        self.fails(2, "generate", "--prompt", "a", "--stop", "", says="stop")

    def test_messages_that_are_wrong(self):
        self.fails(2, "generate", "--messages", self.write("a.json", "{"), says="a.json")
        self.fails(2, "generate", "--messages", self.write("b.json", "[]"), says="empty")
        wrong = self.write("c.json", '[{"role": "king", "content": "x"}]')
        self.fails(2, "generate", "--messages", wrong, says="king")

    def test_models_that_are_not_there(self):
        self.fails(3, "generate", "--prompt", "hi", "--model", "/no/such", says="/no/such")
        self.fails(3, "generate", "--prompt", "hi", "--model", self.folder, says="config.json")
        file = self.write("model.bin", "x")
        self.fails(3, "generate", "--prompt", "hi", "--model", file, says="a file")
        self.environment["HF_HOME"] = str(self.folder)
        self.fails(3, "info", "org/name", says=("org/name", "download", str(self.folder)))
        self.fails(3, "tokenize", "--model", "org/name", "x", says="org/name")
        self.fails(3, "tokenize", "--tokenizer", "absent.json", "x", says="absent.json")

    def test_a_hub_id_is_found_in_the_cache(self):
        snapshot = self.folder / "hub/models--org--name/snapshots/abc"
        snapshot.parent.mkdir(parents=True)
        snapshot.symlink_to(program.settings.root / "models/demo")
        refs = self.folder / "hub/models--org--name/refs"
        refs.mkdir()
        (refs / "main").write_text("abc")
        self.environment["HF_HOME"] = str(self.folder)
        out = self.text("generate", "--model", "org/name", "--prompt", "4 * 70", "--temperature", "0")
        self.assertEqual(out, "280\n")

    def test_one_core_is_enough(self):
        done = subprocess.run(
            [program.settings.program, "generate", "--prompt", "4 * 70", "--temperature", "0"],
            stdin=subprocess.DEVNULL, capture_output=True, env=self.environment, check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}))
        self.assertEqual(done.stdout, b"280\n")


if __name__ == "__main__":
    program.main()
