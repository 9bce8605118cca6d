#!/usr/bin/env python3
"""A program with the CUDA backend where the NVIDIA driver is too old, without a GPU (old_driver.cc stands for it).

Usage: old_driver_test.py FATHOM SOURCE_DIR
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from preload import build, build_driver

FATHOM = sys.argv[1]
SOURCE = pathlib.Path(sys.argv[2])


class OldDriver(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        build_driver("old_driver.cc", folder.name)
        cls.environment = os.environ | {"LD_LIBRARY_PATH": folder.name}

    def fathom(self, *args):
        return subprocess.run([FATHOM, *args], env=self.environment, capture_output=True, text=True, timeout=120, check=False)

    def test_a_gpu_by_name_is_refused_with_both_versions(self):
        done = self.fathom("info", "--device", "cuda:0")
        self.assertEqual((done.returncode, done.stdout), (3, ""), done.stderr)
        for words in ("driver is too old", "supports CUDA 12.4", "needs 13.", "--device cpu"):
            self.assertIn(words, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_auto_takes_the_cpu(self):
        done = self.fathom("generate", "--model", str(SOURCE / "models/demo"), "--prompt", "What is the capital of France?")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "Paris"), done.stderr)

    def test_what_other_tests_load_on_a_gpu_machine_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            build_driver("older_gpu.cc", folder)
            build("lose_gpu.cc", pathlib.Path(folder) / "liblose_gpu.so")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
