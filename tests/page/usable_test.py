"""Whether everybody can use the page: keyboard, screen reader, colours, motion, widths.  Usage: usable_test.py --page FOLDER"""
import scripted_page
from browser import ask, wait_done
from scripted_page import PageTest


class Usable(PageTest):
    def test_text_has_contrast_in_both_themes(self):
        for scheme in ("light", "dark"):
            page = self.start(color_scheme=scheme)
            ratios = page.evaluate(CONTRAST)
            for pair, ratio in ratios.items():
                self.assertGreaterEqual(ratio, 4.5, f"{scheme} {pair}")

    def test_keyboard_alone_is_enough(self):
        page = self.start()
        page.evaluate("document.querySelector('a, button, input, select, textarea, [tabindex]').focus()")
        self.assertEqual(focused(page), "Skip to the message box")
        page.keyboard.press("Enter")
        page.keyboard.type("hello")
        page.keyboard.press("Shift+Enter")
        page.keyboard.type("there")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=You said: hello")
        wait_done(page)
        self.assertEqual(self.mock.requests[-1]["messages"][-1]["content"], "hello\nthere")
        self.assertIn("You said: hello", page.inner_text("#status"))
        page.keyboard.press("Shift+Tab")  # the last action of the answer
        self.assertEqual(focused(page), "Answer again")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        self.assertEqual(outline, "solid")
        page.focus("#open-settings")
        page.keyboard.press("Enter")
        self.assertEqual(focused(page), "Settings")
        page.keyboard.press("Escape")
        self.assertFalse(page.is_visible("#settings"))
        self.assertEqual(page.evaluate("document.activeElement.id"), "open-settings")

    def test_tab_walks_through_everything_in_the_order_in_which_it_is_seen(self):
        page = self.start()
        ask(page, "rivers")
        wait_done(page)
        page.click("#open-engine")
        page.evaluate("document.querySelector('.skip').focus()")
        names = []
        for _ in range(30):
            if names and not names[-1][0]:
                break
            names.append(page.evaluate("""() => {
                const node = document.activeElement;
                if (node === document.body) return ["", ""];
                const label = node.labels?.[0];
                return [node.getAttribute("aria-label") ?? label?.querySelector("span")?.textContent ??
                        label?.textContent ?? node.textContent, getComputedStyle(node).outlineStyle];
            }"""))
            page.keyboard.press("Tab")
        self.assertEqual([name for name, _ in names], [
            "Skip to the message box", "Model", "Engine", "Settings", "Theme: as the system",
            "New chat", "rivers", "Delete “rivers”", "Export", "Import", "Delete all",
            "Conversation", "Copy", "Edit", names[14][0], "Table", "Copy", names[17][0], "map", "Copy", "Answer again",
            "Message", "Send", "Close the engine view", ""])
        self.assertIn("Thought for", names[14][0])
        self.assertIn("def longest", names[17][0])  # what may be wider than the window can be scrolled
        for name, outline in names[1:-1]:  # the first was not reached by a key
            self.assertEqual(outline, "solid", name)

    def test_nothing_that_moves_is_read_out(self):
        page = self.start()
        page.click("#open-engine")
        page.wait_for_selector("#feed-state:text('live')")
        live = "output, [role=status], [role=alert], [role=log]:not([aria-live=off]), [aria-live=polite], [aria-live=assertive]"
        self.assertEqual(page.locator("#gauges").locator(live).count(), 0)
        self.assertEqual(page.locator(live).evaluate_all("nodes => nodes.map((node) => node.id)"),
                         ["status", "feed-state", "tools-error"])
        # An answer is read out once, when it is whole, and not each time a piece comes.
        page.evaluate("""() => {
            window.said = [];
            const status = document.getElementById("status");
            new MutationObserver(() => window.said.push(status.textContent)).observe(status, {childList: true});
        }""")
        ask(page, "hello")
        wait_done(page)
        self.assertEqual(page.evaluate("window.said"), ["Answering.", "You said: hello"])

    def test_motion_is_left_out_for_who_asks_for_less(self):
        for asked, moves in (("reduce", "none"), ("no-preference", "breathe")):
            page = self.start(reduced_motion=asked)
            ask(page, "long")
            page.wait_for_selector(".answer.live .text > p")
            style = "getComputedStyle(document.querySelector('.live .text > p:last-child'), '::after').animationName"
            self.assertEqual(page.evaluate(style), moves)
            page.keyboard.press("Escape")
            wait_done(page)

    def test_nothing_is_wider_than_the_window(self):
        for width in (320, 390, 768, 1024, 1280, 1920):
            page = self.start(viewport={"width": width, "height": 780})
            ask(page, "rivers")
            wait_done(page)
            for opener in (None, "#open-engine", "#open-settings"):
                if opener:
                    page.click(opener)
                wide = page.evaluate("""() => [...document.querySelectorAll("body *")]
                    .filter((node) => node.checkVisibility() && !node.closest("pre, .unseen, .skip, .brand, svg"))
                    .filter((node) => { const box = node.getBoundingClientRect();
                                        return box.right > innerWidth + 1 || box.left < -1; })
                    .map((node) => node.outerHTML.slice(0, 80))""")
                self.assertEqual(wide, [], f"{width} {opener}")

    def test_everything_that_can_be_used_has_a_name(self):
        page = self.start()
        for opener in ("#open-engine", "#open-settings"):
            page.click(opener)
            nameless = page.evaluate("""() => [...document.querySelectorAll("button, input, select, textarea, [role]")]
                .filter((node) => node.checkVisibility())
                .filter((node) => !(node.getAttribute("aria-label") || node.labels?.length ||
                                    node.textContent.trim() || ["status", "alert"].includes(node.getAttribute("role"))))
                .map((node) => node.outerHTML.slice(0, 80))""")
            self.assertEqual(nameless, [])


def focused(page):
    return page.evaluate("document.activeElement.textContent")


CONTRAST = """() => {
  const value = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const rgb = getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map((c) => c / 255);
    probe.remove();
    const [r, g, b] = rgb.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const pairs = [["ink", "ground"], ["ink", "sheet"], ["ink", "sunk"], ["ink", "sea-wash"], ["soft", "ground"],
                 ["soft", "sheet"], ["soft", "sunk"], ["sea", "sheet"], ["sea", "sea-wash"], ["sea-ink", "sea"],
                 ["bad", "sheet"], ["bad", "bad-wash"], ["ground", "ink"], ["sheet", "bad"]];
  return Object.fromEntries(pairs.map(([a, b]) => {
    const [x, y] = [value(a), value(b)].sort((m, n) => n - m);
    return [`${a} on ${b}`, (x + 0.05) / (y + 0.05)];
  }));
}"""


if __name__ == "__main__":
    scripted_page.main()
