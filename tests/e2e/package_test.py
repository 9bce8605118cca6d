"""The installed package: examples build against it with CMake and with pkg-config, and answer."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.ArgumentParser()
OPTIONS.add_argument("--cmake", required=True)
OPTIONS.add_argument("--compiler", required=True)
OPTIONS.add_argument("--build", type=pathlib.Path, required=True)
OPTIONS.add_argument("--root", type=pathlib.Path, required=True)

settings = argparse.Namespace()


def run(*command, stdin="", code=0, **more):
    done = subprocess.run([str(c) for c in command], input=stdin, text=True, capture_output=True,
                          timeout=280, check=False, **more)
    assert done.returncode == code, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        # Moved after installing: nothing may point at where it was.
        run(settings.cmake, "--install", settings.build, "--prefix", cls.folder / "first")
        cls.prefix = cls.folder / "moved"
        (cls.folder / "first").rename(cls.prefix)
        cls.model = cls.prefix / "share/fathom/models/demo"

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def check_examples(self, folder):
        done = run(folder / "ask", self.model, "4 * 70", "What is the capital of France?")
        answers = dict(zip(*[iter(done.stdout.splitlines())] * 2))
        texts = {q: json.loads(a)["choices"][0]["message"]["content"] for q, a in answers.items()}
        self.assertEqual(texts["4 * 70"], "280")
        self.assertIn("Paris", texts["What is the capital of France?"])
        missing = run(folder / "ask", "/no/such", "hi", code=1)
        self.assertIn("/no/such", missing.stderr)
        body = json.dumps({"messages": [{"role": "user", "content": "4 * 70"}], "thinking": {"type": "disabled"}})
        prompt = run(folder / "prompt", self.model, stdin=body)
        self.assertIn("<｜User｜>4 * 70<｜Assistant｜>", prompt.stdout.splitlines()[0])
        self.assertTrue(all(0 <= int(i) < 4096 for i in prompt.stdout.splitlines()[-1].split()))
        self.assertIn("invalid JSON", run(folder / "prompt", self.model, stdin="{", code=1).stderr)

    def test_find_package(self):
        out = self.folder / "with_cmake"
        run(settings.cmake, "-S", settings.root / "examples", "-B", out, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={settings.compiler}",
            "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wshadow -Wconversion -Werror")
        run(settings.cmake, "--build", out)
        self.check_examples(out)

    def test_pkg_config(self):
        if shutil.which("pkg-config") is None:
            self.skipTest("skipped: no pkg-config")
        (config,) = self.prefix.rglob("pkgconfig")
        out = self.folder / "with_pkg_config"
        out.mkdir()
        run("make", "-C", settings.root / "examples", f"OUT={out}", f"CXX={settings.compiler}",
            env={**os.environ, "PKG_CONFIG_PATH": str(config)})
        self.check_examples(out)

    def test_the_installed_program_finds_its_model(self):
        done = run(self.prefix / "bin/fathom", "generate", "--prompt", "4 * 70", "--temperature", "0",
                   cwd=self.folder)
        self.assertEqual(done.stdout, "280\n")
        self.assertIn(str(self.prefix), run(self.prefix / "bin/fathom", "info").stdout)

    def test_only_public_headers_are_installed(self):
        installed = sorted(p.name for p in (self.prefix / "include").rglob("*.h"))
        public = sorted(p.name for p in (settings.root / "include").rglob("*.h"))
        self.assertEqual(installed, public)
        for header in (self.prefix / "include").rglob("*.h"):
            for line in header.read_text(encoding="utf-8").splitlines():
                if line.startswith('#include "'):
                    self.assertTrue(line.startswith('#include "fathom/'), f"{header}: {line}")


if __name__ == "__main__":
    OPTIONS.parse_args(namespace=settings)
    unittest.main(argv=sys.argv[:1], verbosity=2)
