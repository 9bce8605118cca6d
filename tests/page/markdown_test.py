"""page/markdown.js in a browser: its DOM, written as HTML by the browser.  Usage: markdown_test.py --page FOLDER"""
import argparse
import pathlib
import sys
import time
import unittest

import browser
from browser import BrowserTest
from mock_server import Mock

settings = argparse.Namespace(page=None)

RENDER = """async (steps) => {
  const {MarkdownView} = await import("/page/markdown.js");
  const node = document.createElement("div");
  const view = new MarkdownView(node);
  for (const text of steps) view.update(text);
  for (const link of node.querySelectorAll("a")) {
    if (link.rel !== "noopener noreferrer nofollow" || link.target !== "_blank") throw new Error("unsafe link");
    link.removeAttribute("rel");
    link.removeAttribute("target");
  }
  return node.innerHTML;
}"""

CASES = [
    ("", ""),
    ("a < b & c", "<p>a &lt; b &amp; c</p>"),
    ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"),
    ("# A *b*\n###### F ##", "<h3>A <em>b</em></h3><h6>F </h6>"),
    ("#no heading", "<p>#no heading</p>"),
    ("**a** __b__ *c* _d_ ~~e~~ ***f***",
     "<p><strong>a</strong> <strong>b</strong> <em>c</em> <em>d</em> <del>e</del> <strong><em>f</em></strong></p>"),
    ("2 * 3 * 4 and snake_case_name and * x", "<p>2 * 3 * 4 and snake_case_name and * x</p>"),
    ("*a **b** c*", "<p><em>a <strong>b</strong> c</em></p>"),
    ("**open", "<p>**open</p>"),
    (r"\*a\* \_ \q", r"<p>*a* _ \q</p>"),
    ("`a*b*` ``c`d`` ` e", "<p><code>a*b*</code> <code>c`d</code> ` e</p>"),
    ("[a](https://x.org/a_b_c \"t\") <https://y.org> https://z.org/p).",
     '<p><a href="https://x.org/a_b_c">a</a> <a href="https://y.org">https://y.org</a> '
     '<a href="https://z.org/p">https://z.org/p</a>).</p>'),
    ("[a](javascript:alert(1)) [b](/local) [c](mailto:a@b.c)",
     '<p>[a](javascript:alert(1)) [b](/local) <a href="mailto:a@b.c">c</a></p>'),
    ("![pic](https://x.org/i.png)", '<p><a href="https://x.org/i.png">pic</a></p>'),
    ("- a\n- b\n  - c\n    d\n- e", "<ul><li>a</li><li>b<ul><li>c<br>d</li></ul></li><li>e</li></ul>"),
    ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ("1. a\n  - b\n2. c", "<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>"),
    ("- a\n\n  b\n- c", "<ul><li><p>a</p><p>b</p></li><li><p>c</p></li></ul>"),
    ("text\n- a", "<p>text</p><ul><li>a</li></ul>"),
    ("The year\n1984. Good.", "<p>The year<br>1984. Good.</p>"),
    ("> a\n> > b\n\nc", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>"),
    ("---\n***", "<hr><hr>"),
    ("a | b", "<p>a | b</p>"),
    ("x\r\ny", "<p>x<br>y</p>"),
]


class Markdown(BrowserTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mock = Mock(settings.page)

    @classmethod
    def tearDownClass(cls):
        cls.mock.close()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.page = self.open(self.mock.url)

    def render(self, *steps):
        return self.page.evaluate(RENDER, list(steps))

    def test_cases(self):
        for text, html in CASES:
            with self.subTest(text=text):
                self.assertEqual(self.render(text), html)

    def test_code_and_tables(self):
        html = self.render("```c++ x\n<b> & *a*\n\n  `\n```\nafter")
        self.assertIn("<span>c++</span>", html)
        self.assertIn("<code>&lt;b&gt; &amp; *a*\n\n  `</code>", html)
        self.assertTrue(html.endswith("<p>after</p>"), html)
        html = self.render("| a | b |\n|:-:|--:|\n| 1 \\| 2 | `x` | more |\n| 3 |\nend")
        self.assertIn('<th class="center">a</th><th class="right">b</th>', html)
        self.assertIn('<td class="center">1 | 2</td><td class="right"><code>x</code></td>', html)
        self.assertIn('<td class="center">3</td><td class="right"></td>', html)
        self.assertTrue(html.endswith("<p>end</p>"), html)

    def test_a_text_that_grows_shows_what_it_would_show_at_once(self):
        text = ("# T\n\nSome *text* and `code`.\n\n- a\n- b\n  1. c\n\n```py\nx = 1\n\ny = 2\n```\n\n"
                "| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\n\nend **x**")
        steps = [text[:i] for i in range(0, len(text), 3)] + [text]
        self.assertEqual(self.render(*steps), self.render(text))

    def test_blocks_that_are_complete_keep_their_nodes(self):
        same = self.page.evaluate("""async () => {
          const {MarkdownView} = await import("/page/markdown.js");
          const node = document.createElement("div");
          const view = new MarkdownView(node);
          view.update("first\\n\\nsec");
          const first = node.firstChild;
          view.update("first\\n\\nsecond");
          return first === node.firstChild && node.textContent === "firstsecond";
        }""")
        self.assertTrue(same)

    def test_hostile_texts_take_no_time_and_make_no_foreign_nodes(self):
        size = 40_000
        texts = {name: (pattern * (size // len(pattern)))[:size] for name, pattern in {
            "stars": "*", "stars and letters": "*a ", "open": "**a", "under": "_a", "brackets": "[", "links": "[a](",
            "images": "![", "ticks": "`a``b", "quotes": "> ", "lines of quotes": ">\n", "lists": "- ", "deep": "  - a\n",
            "angles": "<a", "pipes": "|-", "tildes": "~~", "escapes": "\\", "spaces": " ", "urls": "http://",
            "hashes": "# ", "fences": "```\n", "heading": "# " + " #" * 20, "digits": "1. "}.items()}
        texts["table"] = "|a" * 2000 + "\n" + "|-" * 2000 + "\n" + "|b\n" * 500
        texts["nested"] = "".join("  " * i + "- a\n" for i in range(150))
        allowed = {"P", "EM", "STRONG", "DEL", "CODE", "PRE", "A", "UL", "OL", "LI", "BLOCKQUOTE", "HR", "BR", "DIV",
                   "SPAN", "BUTTON", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "H3", "H4", "H5", "H6"}
        for name, text in texts.items():
            with self.subTest(name=name):
                begin = time.monotonic()
                tags = self.page.evaluate("""async (text) => {
                  const {MarkdownView} = await import("/page/markdown.js");
                  const node = document.createElement("div");
                  new MarkdownView(node).update(text);
                  return [...new Set([...node.querySelectorAll("*")].map((one) => one.tagName))];
                }""", text)
                self.assertLess(time.monotonic() - begin, 3)
                self.assertLessEqual(set(tags), allowed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--page", type=pathlib.Path, required=True)
    _, rest = parser.parse_known_args(namespace=settings)
    browser.need_browser()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
