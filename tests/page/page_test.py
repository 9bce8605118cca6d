"""The page in a browser, on scripted answers.  Usage: page_test.py --page FOLDER [--shots FOLDER]"""
import json
import pathlib

import scripted_page
from browser import ask, wait_done, wait_until
from scripted_page import PageTest, settings


class Chatting(PageTest):
    def test_an_answer_streams_with_thinking_folded_and_markdown(self):
        page = self.start()
        self.mock.pace_s = 0.06  # some seconds: a busy machine must see it while it is live
        ask(page, "rivers")
        page.wait_for_selector(".answer.live summary")
        page.wait_for_selector(".answer.live h4")  # text shows before the answer is complete
        self.assertTrue(page.is_visible("#stop"))
        self.shot(page, "streaming")
        wait_done(page)
        answer = page.locator(".answer")
        self.assertFalse(answer.locator(".reasoning").is_visible())
        answer.locator("summary").click()
        self.assertIn("I recall their lengths", answer.locator(".reasoning").inner_text())
        self.assertEqual(answer.locator("h4").inner_text(), "Rivers of Europe")
        self.assertEqual(answer.locator("tbody tr").count(), 2)
        self.assertEqual(answer.locator("ol ul li").all_inner_texts(), ["passes Vienna", "and Budapest"])
        self.assertIn("max(rivers, key", answer.locator("pre code").inner_text())
        self.assertEqual(answer.locator("a").get_attribute("href"), "https://example.org/map")
        figures = answer.locator(".figures").inner_text()
        for part in ("87 tokens", "tokens/s", "prompt 1,234, 1,100 cached"):
            self.assertIn(part, figures)
        self.shot(page, "chat-light")

    def test_html_of_a_model_stays_text(self):
        page = self.start()
        ask(page, "hostile")
        wait_done(page)
        self.assertIn("<img src=x onerror", page.inner_text(".answer .text"))
        self.assertIn("javascript:window", page.inner_text(".answer .text"))
        self.assertEqual(page.locator(".answer .text img, .answer .text script").count(), 0)
        self.assertEqual(page.locator(".answer .text a").count(), 1)
        self.assertIsNone(page.evaluate("window.hacked ?? null"))

    def test_stop_keeps_what_came_and_the_server_notices(self):
        page = self.start()
        ask(page, "long")
        wait_until(page, "document.querySelector('.answer .text').textContent.length > 100")
        page.keyboard.press("Escape")
        wait_done(page)
        self.assertIn("stopped", page.inner_text(".answer .figures"))
        length = len(page.inner_text(".answer .text"))
        self.assertTrue(100 < length < 9000, length)
        ask(page, "and again")
        page.wait_for_selector("text=You said: and again")
        self.assertEqual(self.mock.cut, ["long"])
        sent = self.mock.requests[-1]["messages"]
        self.assertEqual([m["role"] for m in sent], ["user", "assistant", "user"])
        self.assertNotIn("meta", sent[1])

    def test_history_survives_a_reload_and_can_be_deleted(self):
        context = self.context()
        page = self.open(self.mock.url, context)
        ask(page, "first chat")
        wait_done(page)
        page.click("#new-chat")
        ask(page, "rivers")
        wait_done(page)
        page.reload()
        page.wait_for_selector(".answer h4")
        self.assertEqual(page.locator("#chats .chat").all_inner_texts(), ["rivers", "first chat"])
        page.click("text=first chat")
        self.assertIn("You said: first chat", page.inner_text(".answer"))
        page.hover("#chats li:last-child")
        page.click("[aria-label='Delete “first chat”']")
        page.click("dialog button[value=yes]")
        page.wait_for_selector(".answer h4")
        page.click("#delete-all")
        page.click("dialog button[value=no]")
        self.assertEqual(page.locator("#chats li").count(), 1)
        page.click("#delete-all")
        page.click("dialog button[value=yes]")
        page.wait_for_selector(".greeting")
        page.reload()
        page.wait_for_selector(".greeting")
        self.assertEqual(page.locator("#chats li").count(), 0)

    def test_export_and_import(self):
        page = self.start()
        ask(page, "keep me")
        wait_done(page)
        with page.expect_download() as download:
            page.click("#export")
        text = pathlib.Path(download.value.path()).read_text(encoding="utf-8")
        chats = json.loads(text)["chats"]
        self.assertEqual([m["content"] for m in chats[0]["messages"]], ["keep me", "You said: keep me"])
        other = self.start()
        files = [("wrong.json", b'{"chats": 3}', ".failure"), ("right.json", text.encode(), "text=keep me")]
        for name, data, shows in files:
            other.set_input_files("#import-file", {"name": name, "mimeType": "application/json", "buffer": data})
            other.wait_for_selector(shows)
        self.assertIn("not an export", other.inner_text(".failure"))

    def test_errors_are_shown_and_can_be_tried_again(self):
        page = self.start()
        self.expected = ["400", "429"]
        for prompt, says in (("refuse", "valid range of temperature"), ("busy", "Try again in 7 s"),
                             ("break", "ended before the answer"), ("error within", "The engine failed.")):
            ask(page, prompt)
            page.wait_for_selector(".failure")
            self.assertIn(says, page.inner_text(".failure"))
            wait_done(page)
        self.shot(page, "error")
        number = len(self.mock.requests)
        page.click(".failure >> text=Try again")
        page.wait_for_selector(".failure")
        self.assertEqual(len(self.mock.requests), number + 1)
        self.assertEqual(self.mock.requests[-1]["messages"], self.mock.requests[-2]["messages"])

    def test_what_failed_stays_marked(self):
        page = self.start()
        self.expected = ["429"]
        for prompt in ("busy", "break", "hello"):
            ask(page, prompt)
            wait_done(page)
        for again in (False, True):
            self.assertEqual(page.locator(".failure").count(), 0)
            self.assertEqual(page.locator(".unanswered").all_inner_texts(),
                             ["Not answered: The queue is full. Try again in 7 s."])
            self.assertIn("cut off by an error", page.locator(".answer .figures").first.inner_text())
            self.assertNotIn("meta", self.mock.requests[-1]["messages"][0])
            if not again:
                self.shot(page, "failed-before")
                page.reload()
                page.wait_for_selector(".answer")
        page.locator(".user").first.hover()
        page.locator(".user >> text=Edit").first.click()
        ask(page, "hello")
        wait_done(page)
        self.assertEqual(page.locator(".unanswered").count(), 0)

    def test_a_server_that_is_gone_and_a_key_that_is_missing(self):
        self.mock.key = "sesame"
        self.expected = ["401", "ERR_CONNECTION_REFUSED"]
        page = self.start()
        ask(page, "hello")
        page.wait_for_selector(".failure")
        self.assertIn("Settings", page.inner_text(".failure"))
        page.click("#open-settings")
        page.fill("#set-key", "sesame")
        page.press("#set-key", "Tab")
        page.wait_for_selector("#model option[value=mock]", state="attached")
        page.click(".failure >> text=Try again")
        page.wait_for_selector("text=You said: hello")
        self.assertNotIn("sesame", page.evaluate("JSON.stringify(localStorage)"))
        self.mock.close()
        ask(page, "anyone?")
        page.wait_for_selector(".failure")
        self.assertIn("cannot be reached", page.inner_text(".failure"))

    def test_edit_and_answer_again_forget_what_followed(self):
        page = self.start()
        for text in ("one", "two"):
            ask(page, text)
            wait_done(page)
        page.locator(".answer >> text=Answer again").first.click()
        wait_done(page)
        self.assertEqual([m["content"] for m in self.mock.requests[-1]["messages"]], ["one"])
        self.assertEqual(page.locator(".message").count(), 2)
        page.hover(".user")
        page.click(".user >> text=Edit")
        self.assertEqual(page.input_value("#prompt"), "one")
        self.assertEqual(page.locator(".message").count(), 0)

    def test_tool_calls_show_and_take_results(self):
        page = self.start()
        ask(page, "weather")
        page.wait_for_selector(".results")
        self.assertEqual(page.inner_text(".call-name"), "get_weather")
        self.assertIn('"city": "Oslo"', page.inner_text(".call pre"))
        page.fill(".results textarea", "sunny")
        self.shot(page, "tool")
        page.click("text=Give the results")
        page.wait_for_selector("text=You said: sunny")
        last = self.mock.requests[-1]["messages"]
        self.assertEqual(last[-1], {"role": "tool", "tool_call_id": "call_1", "content": "sunny"})
        self.assertEqual(last[-2]["tool_calls"][0]["function"]["arguments"], '{"city": "Oslo"}')

    def test_settings_reach_the_request_and_stay(self):
        page = self.start()
        page.select_option("#model", "mock-other")
        page.click("#open-settings")
        for name, value in (("system", "Be brief."), ("temperature", "0.5"), ("top-p", "0.9"),
                            ("max-tokens", "64"), ("seed", "7"), ("stop", "END\nSTOP")):
            page.fill(f"#set-{name}", value)
        page.select_option("#set-thinking", "low")
        page.click("#sample-tools")
        self.shot(page, "settings")
        page.reload()
        page.wait_for_selector("#model option", state="attached")
        ask(page, "hello")
        wait_done(page)
        body = self.mock.requests[-1]
        self.assertEqual(body["messages"][0], {"role": "system", "content": "Be brief."})
        for key, value in {"model": "mock-other", "temperature": 0.5, "top_p": 0.9, "max_tokens": 64, "seed": 7,
                           "stop": ["END", "STOP"], "thinking": {"type": "enabled"}, "reasoning_effort": "low",
                           "stream": True, "stream_options": {"include_usage": True}}.items():
            self.assertEqual(body[key], value, key)
        self.assertEqual(body["tools"][0]["function"]["name"], "get_weather")
        page.click("#open-settings")
        for field, value, says in (("#set-temperature", "5", "Temperature"), ("#set-tools", "[", "not JSON")):
            page.fill(field, value)
            ask(page, "no")
            self.assertIn(says, page.inner_text(".failure >> nth=-1"))
            page.fill(field, "")
        self.assertEqual(len(self.mock.requests), 1)

    def test_storage_is_bounded(self):
        page = self.start()
        kept = page.evaluate("""async () => {
          const {ChatStore, CHATS_MAX, CHARACTERS_MAX} = await import("/page/store.js");
          localStorage.clear();
          const store = new ChatStore(localStorage);
          for (let i = 0; i < CHATS_MAX + 5; ++i) {
            const chat = store.create();
            chat.messages.push({role: "user", content: `chat ${i}`});
            store.save(chat);
          }
          const number = new ChatStore(localStorage).chats.length;
          const first = new ChatStore(localStorage).chats[0].title;
          const large = store.create();
          large.messages.push({role: "user", content: "x".repeat(CHARACTERS_MAX - 1000)});
          const fits = store.save(large);
          const after = new ChatStore(localStorage).chats.length;
          localStorage.setItem("fathom.chats.v1", "{damaged");
          return {number, first, fits, after, damaged: new ChatStore(localStorage).chats.length,
                  none: new ChatStore(null).save(large)};
        }""")
        self.assertEqual((kept["number"], kept["first"], kept["fits"], kept["damaged"], kept["none"]),
                         (100, "chat 104", True, 0, False))
        self.assertTrue(1 <= kept["after"] < 20, kept)


class Looks(PageTest):
    def test_the_engine_view_moves(self):
        page = self.start()
        page.click("#open-engine")
        page.wait_for_selector("#feed-state:text('live')")
        values = page.locator("#gauges .value")
        wait_until(page, "parseInt(document.querySelector('#gauges .value').textContent) > 250")
        path = page.locator("#gauges path.line").first
        before = (path.get_attribute("d"), values.all_inner_texts())
        page.wait_for_timeout(1500)
        self.assertNotEqual(path.get_attribute("d"), before[0])
        self.assertNotEqual(values.all_inner_texts(), before[1])
        self.assertIn("75 %", values.nth(3).inner_text())
        self.assertIn("62 %", values.nth(4).inner_text())
        self.assertRegex(page.get_attribute(".tank", "aria-valuenow"), r"^\d")
        self.assertIn("now", page.get_attribute("#gauges svg[role=img]", "aria-label"))
        page.wait_for_timeout(4000 if settings.shots else 0)
        self.shot(page, "engine-light")
        self.expected = ["ERR_"]
        self.mock.close()

    def test_dark_mode_by_system_and_by_choice(self):
        def ground(page):
            return page.evaluate("getComputedStyle(document.body).backgroundColor")
        dark = self.start(color_scheme="dark")
        self.assertEqual(ground(dark), "rgb(13, 20, 26)")
        ask(dark, "rivers")
        wait_done(dark)
        dark.click("#open-engine")
        dark.wait_for_selector("#feed-state:text('live')")
        dark.wait_for_timeout(6000 if settings.shots else 0)
        self.shot(dark, "dark")
        light = self.start(color_scheme="light")
        self.assertEqual(ground(light), "rgb(246, 248, 249)")
        light.click("#theme")
        light.click("#theme")
        self.assertEqual(light.get_attribute("#theme", "aria-label"), "Theme: dark")
        self.assertEqual(ground(light), "rgb(13, 20, 26)")
        light.reload()
        self.assertEqual(ground(light), "rgb(13, 20, 26)")

    def test_a_phone_shows_one_thing_at_a_time(self):
        page = self.start(viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True)
        self.shot(page, "phone-empty")
        ask(page, "rivers")
        wait_done(page)
        self.assertFalse(page.is_visible("#history"))
        width = page.evaluate("document.documentElement.scrollWidth")
        self.assertLessEqual(width, 390)
        self.shot(page, "phone")
        page.click("#open-history")
        self.assertTrue(page.is_visible("#history"))
        self.shot(page, "phone-chats")
        page.click("#chats .chat")
        self.assertFalse(page.is_visible("#history"))
        page.click("#open-engine")
        page.wait_for_selector("#feed-state:text('live')")
        page.wait_for_timeout(3000 if settings.shots else 0)
        self.shot(page, "phone-engine")
        page.click("#engine .close")
        self.assertFalse(page.is_visible("#engine"))


if __name__ == "__main__":
    scripted_page.main()
