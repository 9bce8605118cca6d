"""A `fathom serve` on the demo model for tests that come as its users do: with official clients and a browser."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

SKIPPED = 77
settings = argparse.Namespace(program=None, root=None)


class Server:
    """The process; its log is collected."""

    def __init__(self, *arguments):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("FATHOM_", "OPENAI_", "ANTHROPIC_"))}
        self.process = subprocess.Popen(
            [settings.program, "serve", "--port", "0", "--threads", "2", *map(str, arguments)],
            stderr=subprocess.PIPE, text=True, env=clean)
        self.lines = []
        self.thread = threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True)
        self.port = self.wait_for_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def wait_for_port(self):
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r"listening on http://\S+:(\d+)", line)
            if found:
                self.thread.start()
                return int(found.group(1))
        raise AssertionError(f"the server did not start: {self.lines}")

    def metric(self, name):
        """The sum of a metric's series."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as reply:
            text = reply.read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if re.match(re.escape(name) + r"[{ ]", line))

    def wait_idle(self, timeout_s=20):
        """Seconds until no request runs."""
        begin = time.monotonic()
        while self.metric("fathom:requests_running") + self.metric("fathom:requests_waiting") > 0:
            if time.monotonic() - begin > timeout_s:
                raise AssertionError("requests still run")
            time.sleep(0.01)
        return time.monotonic() - begin

    def close(self):
        self.process.terminate()
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.thread.join(10)
        self.process.stderr.close()
        if code != 0:
            raise AssertionError(f"the server ended with {code}: {self.lines[-5:]}")


class ServedTest(unittest.TestCase):
    """One server for all tests of a class."""
    options = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(*cls.options)
        cls.addClassCleanup(cls.server.close)


KEYS = "alice sk-alice-0123456789abcdef\nbob sk-bob-0123456789abcdef requests_per_minute=2\n"


def keys_file():
    """A file of two keys; bob may ask twice a minute."""
    folder = tempfile.mkdtemp()
    file = pathlib.Path(folder) / "keys"
    file.write_text(KEYS, encoding="utf-8")
    file.chmod(0o600)
    return file


# What the demo model knows how to do.
FRANCE = [{"role": "user", "content": "What is the capital of France?"}]
TIMER = "Start a 21 minute timer."
TIMER_SCHEMA = {"type": "object", "properties": {"minutes": {"type": "integer", "description": "Length in minutes"}},
                "required": ["minutes"]}
WEATHER_SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "description": "City name"}},
                  "required": ["city"]}
COLORS = 'Return json with an array "colors" of: pink, green, red'
# A white square of one pixel.
PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")


def main(*modules):
    """Runs the tests of the calling file; skips if this machine lacks a module that they need."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    _, rest = parser.parse_known_args(namespace=settings)
    settings.program = os.path.abspath(settings.program)
    for module in modules:
        try:
            __import__(module)
        except ImportError:
            print(f"skipped: no Python package {module}")
            sys.exit(SKIPPED)
    unittest.main(argv=[sys.argv[0], *rest], module="__main__", verbosity=2)
