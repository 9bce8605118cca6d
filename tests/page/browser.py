"""A headless Chromium for the tests of the page, and what every test of it must keep."""
import shutil
import sys
import time
import unittest

try:
    from playwright import sync_api
except ImportError:
    sync_api = None

SKIPPED = 77


def need_browser():
    """Ends the program if this machine cannot run these tests."""
    if sync_api is None or shutil.which("chromium") is None:
        print("skipped: no playwright package" if sync_api is None else "skipped: no chromium")
        sys.exit(SKIPPED)


class BrowserTest(unittest.TestCase):
    """`self.open(url)` gives a page; errors and breaches of the policy on it fail the test."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.playwright = sync_api.sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=shutil.which("chromium"),
                                                     args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        super().tearDownClass()

    def setUp(self):
        self.faults = []
        self.expected = []  # parts of console messages that a test provokes

    def context(self, **options):
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 800},
                                              "reduced_motion": "reduce", **options})
        context.set_default_timeout(60_000)
        self.addCleanup(context.close)
        return context

    def open(self, url, context=None):
        page = (context or self.context()).new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text)
                if message.type == "error" else None)
        page.goto(url)
        page.wait_for_selector("#model option", state="attached")
        return page

    def tearDown(self):
        left = [fault for fault in self.faults if not any(part in fault for part in self.expected)]
        self.assertEqual(left, [])


def ask(page, text):
    page.fill("#prompt", text)
    page.press("#prompt", "Enter")


def wait_done(page):
    """Until no answer is coming."""
    page.wait_for_selector("#send", state="visible")


def wait_until(page, expression):
    """Playwright's own wait_for_function evaluates text in the page, which its policy forbids."""
    deadline = time.monotonic() + 10
    while not page.evaluate(expression):
        if time.monotonic() > deadline:
            raise AssertionError(f"never true: {expression}")
        page.wait_for_timeout(20)
