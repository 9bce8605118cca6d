"""Runs the program and checks what every run must keep: used by the tests of this folder."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--program", required=True)
OPTIONS.add_argument("--root", type=pathlib.Path, required=True)

settings = argparse.Namespace(program=None, root=None)

# What a user's environment could change.
CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(("FATHOM_", "DEEPINFER_", "HF_", "XDG_"))}


class ProgramTest(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = dict(CLEAN)

    def run_program(self, *arguments, stdin="", code=0, timeout=120):
        """The finished process; its exit code must be `code`."""
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        done = subprocess.run([settings.program, *map(str, arguments)], input=data,
                              capture_output=True, timeout=timeout, env=self.environment,
                              cwd=self.folder, check=False)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stderr.decode()}")
        return done

    def text(self, *arguments, **more):
        return self.run_program(*arguments, **more).stdout.decode()

    def result(self, *arguments, **more):
        """The one JSON object that the program prints."""
        return json.loads(self.text(*arguments, "--json", **more))

    def fails(self, code, *arguments, says=(), **more):
        """Exactly one line on stderr, nothing on stdout, nothing left in the folder."""
        before = sorted(self.folder.rglob("*"))
        done = self.run_program(*arguments, code=code, **more)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, f"{arguments}\n{lines}")
        self.assertTrue(lines[0].startswith("fathom: "), lines[0])
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, lines[0])
        self.assertEqual(done.stdout, b"")
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        return lines[0]

    def write(self, name, text):
        path = self.folder / name
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text, encoding="utf-8")
        return path


def golden_rows():
    file = settings.root / "tests/data/demo/golden.json"
    return json.loads(file.read_text(encoding="utf-8"))["rows"]


def main():
    OPTIONS.parse_args(namespace=settings)
    settings.program = os.path.abspath(settings.program)
    settings.root = settings.root.resolve()
    unittest.main(argv=sys.argv[:1], module="__main__", verbosity=2)
