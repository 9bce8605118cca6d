"""The web page as fathom serve gives it, with the demo model behind it, in headless Chromium.

Usage: page_on_server_test.py --program FATHOM --root DIR; FATHOM_TEST_SHOTS names a folder for screenshots.
"""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "page"))

import served
from browser import BrowserTest, ask, wait_done, wait_until
from served import ServedTest

STORY = "Tell me a short story."


class Page(BrowserTest, ServedTest):
    def start(self, **options):
        return self.open(self.server.url, self.context(**options))

    def shot(self, page, name):
        folder = os.environ.get("FATHOM_TEST_SHOTS")
        if folder:
            page.screenshot(path=pathlib.Path(folder) / f"{name}.png")

    def test_send_reload_and_go_on(self):
        page = self.start()
        self.assertEqual(page.input_value("#model"), "demo")
        page.click("#open-settings")
        page.select_option("#set-thinking", "off")
        page.fill("#set-temperature", "0")
        page.click("#settings .close")
        ask(page, "My name is Bob.")
        wait_done(page)
        page.reload()
        page.wait_for_selector(".answer .figures")
        ask(page, "What is my name?")
        wait_until(page, "document.querySelectorAll('.answer .figures').length === 2")
        self.assertIn("Bob", page.locator(".answer .text").nth(1).inner_text())
        self.assertRegex(page.locator(".figures").nth(1).inner_text(), r"\d tokens")
        self.shot(page, "live-chat")

    def test_thinking_is_folded(self):
        page = self.start()
        page.click("#open-settings")
        page.select_option("#set-thinking", "low")
        page.click("#settings .close")
        ask(page, "What is 113 mod 5?")
        page.wait_for_selector(".answer .figures")
        self.assertFalse(page.is_visible(".reasoning"))
        page.click(".thinking summary")
        self.assertTrue(page.inner_text(".reasoning").strip())

    def test_stop_and_the_engine_view(self):
        page = self.start()
        page.click("#open-settings")
        page.select_option("#set-thinking", "off")
        page.click("#open-engine")
        page.wait_for_selector("#feed-state:text('live')")
        # Stories of the demo model are over soon: the stop has to be quick, and may come too late.
        for _ in range(10):
            ask(page, STORY)
            page.keyboard.press("Escape")
            wait_done(page)
            if page.locator(".figures", has_text="stopped").count() > 0 or page.locator(".answer").count() == 0:
                break
        self.server.wait_idle(5)
        ask(page, STORY)
        wait_done(page)
        page.wait_for_selector(".answer .figures >> nth=-1")
        wait_until(page, "parseInt(document.querySelector('#gauges .note').textContent) > 10")
        self.assertGreater(self.server.metric("fathom:generated_tokens_total"), 10)
        self.shot(page, "live-engine")

    def test_an_error_of_the_server_is_shown(self):
        page = self.start()
        self.expected = ["400"]
        ask(page, "word " * 30_000)
        page.wait_for_selector(".failure")
        self.assertIn("maximum context length", page.inner_text(".failure"))
        self.assertTrue(page.is_visible("text=Try again"))


if __name__ == "__main__":
    if shutil.which("chromium") is None:
        print("skipped: no chromium")
        sys.exit(served.SKIPPED)
    served.main("playwright")
