"""What the tests of the page on scripted answers share.  Usage of each: NAME_test.py --page FOLDER [--shots FOLDER]"""
import argparse
import pathlib
import sys
import unittest

import browser
from browser import BrowserTest
from mock_server import Mock

settings = argparse.Namespace(page=None, shots=None)


class PageTest(BrowserTest):
    def setUp(self):
        super().setUp()
        self.mock = Mock(settings.page)
        self.addCleanup(self.mock.close)

    def start(self, **options):
        return self.open(self.mock.url, self.context(**options))

    def shot(self, page, name):
        if settings.shots:
            page.screenshot(path=settings.shots / f"{name}.png")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=pathlib.Path, required=True)
    parser.add_argument("--shots", type=pathlib.Path, help="screenshots go there")
    _, rest = parser.parse_known_args(namespace=settings)
    browser.need_browser()
    unittest.main(argv=[sys.argv[0], *rest], module="__main__", verbosity=2)
