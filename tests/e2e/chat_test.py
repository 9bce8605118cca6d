"""fathom chat: by pipe and on a terminal."""
import json
import os
import pty
import select
import signal
import subprocess
import time

import program
from program import ProgramTest

GREEDY = ("--temperature", "0")


class PipedChat(ProgramTest):
    def test_answers_each_line_and_remembers(self):
        out = self.text("chat", *GREEDY, stdin="My name is Bob.\nWhat is my name?\n")
        answers = out.splitlines()
        self.assertEqual(len(answers), 2)
        self.assertIn("Bob", answers[1])
        alone = self.text("chat", *GREEDY, stdin="What is my name?")
        self.assertNotIn("Bob", alone)

    def test_reset_and_undo_forget(self):
        for command in ("/reset", "/undo"):
            out = self.text("chat", *GREEDY, stdin=f"My name is Bob.\n{command}\nWhat is my name?\n")
            self.assertNotIn("Bob", out.splitlines()[1], command)

    def test_retry_asks_again(self):
        out = self.text("chat", *GREEDY, stdin="4 * 70\n/retry\n").splitlines()
        self.assertEqual(out, ["280", "280"])

    def test_save_and_load(self):
        self.text("chat", *GREEDY, stdin="/system Be brief.\nMy name is Bob.\n/save chat.json\n")
        messages = json.loads((self.folder / "chat.json").read_text(encoding="utf-8"))
        self.assertEqual([m["role"] for m in messages], ["system", "user", "assistant"])
        out = self.text("chat", *GREEDY, stdin="/load chat.json\nWhat is my name?\n")
        self.assertIn("Bob", out)

    def test_commands_answer_on_stderr_and_never_end_the_chat(self):
        script = "\n".join(["/help", "/params", "/nope", "/think", "/think low", "/think off", "/set",
                            "/set temperature cold", "/set top_p 7", "/set max_tokens 99999999",
                            "/set seed 4", "/set stop", "/save", "/load", "/load absent.json", "/undo",
                            "/retry", "4 * 70", "/exit", "4 * 70"])
        done = self.run_program("chat", *GREEDY, stdin=script)
        self.assertEqual(done.stdout, b"280\n")
        for word in (b"/system TEXT", b"temperature 0", b"/nope", b"absent.json"):
            self.assertIn(word, done.stderr)

    def test_messages_of_several_lines(self):
        self.text("chat", *GREEDY, stdin='a\\\nb\n"""c\nd\n"""\n/save chat.json\n')
        messages = json.loads((self.folder / "chat.json").read_text(encoding="utf-8"))
        self.assertEqual([m["content"] for m in messages if m["role"] == "user"], ["a\nb", "c\nd\n"])

    def test_a_full_context_says_what_to_do_and_keeps_the_conversation(self):
        script = "My name is Bob.\n" + "word " * 20000 + "\nWhat is my name?\n"
        done = self.run_program("chat", *GREEDY, stdin=script, code=2)
        self.assertEqual(done.stderr.count(b"fathom: "), 1)
        self.assertIn(b"/reset", done.stderr)
        self.assertIn("Bob", done.stdout.decode().splitlines()[1])

    def test_invalid_utf8_is_refused(self):
        done = self.run_program("chat", *GREEDY, stdin=b"\xff\xfe\n4 * 70\n", code=2)
        self.assertIn(b"UTF-8", done.stderr)
        self.assertEqual(done.stdout, b"280\n")


class TerminalChat(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment["TERM"] = "xterm"
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)

        def take_terminal():  # so that ctrl-C becomes a signal of this program
            os.setsid()
            import fcntl
            import termios
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [program.settings.program, "chat", *GREEDY], stdin=slave, stdout=slave, stderr=slave,
            env=self.environment, cwd=self.folder, preexec_fn=take_terminal)
        os.close(slave)
        self.addCleanup(self.stop)
        self.seen = ""

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=10)

    def send(self, text):
        # The line editor takes the terminal just after it shows its prompt; keys that come in between are the kernel's.  People are
        # slower than that.
        time.sleep(0.25)
        os.write(self.master, text.encode())

    def wait_for(self, text, timeout=30):
        """Reads until `text` comes; what follows it stays."""
        deadline = time.monotonic() + timeout
        while text not in self.seen:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                self.fail(f"no {text!r} in {self.seen!r}")
            try:
                self.seen += os.read(self.master, 4096).decode(errors="replace")
            except OSError:
                self.fail(f"the program ended; no {text!r} in {self.seen!r}")
        before, self.seen = self.seen.split(text, 1)
        return before

    def leave(self):
        """ctrl-D at an empty prompt.  One that comes before the line editor has the terminal may be lost, so it is sent again."""
        for _ in range(20):
            self.send("\x04")
            try:
                return self.process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                pass
        self.fail(f"ctrl-D does not end the chat; seen: {self.seen!r}")

    def test_ctrl_c_stops_the_answer_only(self):
        self.wait_for("> ")
        self.send("/set max_tokens 15000\r")
        self.wait_for("max_tokens is 15000")
        # Without an end token in reach the answer goes on until it is stopped.
        self.send("/set temperature 100\r")
        self.wait_for("temperature is 100")
        self.send("/set seed 3\r")
        self.wait_for("seed is 3")
        self.send("hi\r")
        self.wait_for("hi\r\n")
        time.sleep(0.3)
        self.send("\x03")
        self.wait_for("(stopped)")
        self.send("/set temperature 0\r")
        self.wait_for("temperature is 0")
        self.send("/reset\r")
        self.wait_for("forgotten")
        self.send("4 * 70\r")
        self.wait_for("280")
        self.wait_for("> ")
        self.assertEqual(self.leave(), 0)

    def test_second_ctrl_c_at_an_empty_prompt_leaves(self):
        self.wait_for("> ")
        self.send("half a question")
        self.wait_for("question")
        self.send("\x03")
        self.wait_for("^C")
        self.wait_for("> ")
        self.send("\x03")
        self.wait_for("ctrl-C again")
        self.assertIsNone(self.process.poll())
        self.wait_for("> ")
        self.send("\x03")
        self.assertEqual(self.process.wait(timeout=10), 0)

    def test_lines_can_be_edited_and_recalled(self):
        self.wait_for("> ")
        self.send("4 * 77\x7f0\r")
        self.wait_for("280")
        self.wait_for("> ")
        self.send("\x1b[A\r")
        self.wait_for("280")
        self.send("/exit\r")
        self.assertEqual(self.process.wait(timeout=10), 0)

    def test_reasoning_is_dimmed(self):
        self.wait_for("> ")
        self.send("/think low\r")
        self.wait_for("think low")
        self.wait_for("> ")
        self.send("hi\r")
        self.wait_for("\x1b[2m")
        self.assertTrue(self.wait_for("\x1b[0m").strip())
        self.wait_for("first after")
        self.send("/exit\r")
        self.assertEqual(self.process.wait(timeout=10), 0)


if __name__ == "__main__":
    program.main()
