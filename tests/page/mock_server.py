"""A server for tests of the page alone: scripted answers, errors, tool calls and a feed of the engine.

What it says depends on the last message: see ANSWERS.  Serves the page as src/server does, with the same
policy, from the source files.
"""
import http.server
import json
import pathlib
import threading
import time

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

MARKDOWN = """## Rivers of Europe

Three of the **longest** are listed *below*; the `Volga` leads.

| river | length (km) |
|:--|--:|
| Volga | 3,531 |
| Danube | 2,850 |

1. Volga
2. Danube
   - passes Vienna
   - and Budapest

```python
def longest(rivers):
    return max(rivers, key=lambda r: r.length)
```

> A [map](https://example.org/map) helps.
"""

HOSTILE = """<img src=x onerror="window.hacked=1"> <script>window.hacked=1</script>
[click](javascript:window.hacked=1) ![x](data:text/html,x) [ok](https://example.org)
"""


def chunk(delta, finish=None, usage=None):
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "mock",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}], "usage": usage}


def texts(text, size=6):
    return [chunk({"content": text[i:i + size]}) for i in range(0, len(text), size)]


USAGE = {"prompt_tokens": 1234, "completion_tokens": 87, "total_tokens": 1321,
         "prompt_tokens_details": {"cached_tokens": 1100}}


def end(reason="stop"):
    return [chunk({"content": ""}, reason, USAGE)]


CALL = [chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
                               "function": {"name": "get_weather", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"city": "Os'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'lo"}'}}]})]
THOUGHT = [chunk({"content": None, "reasoning_content": word + " "})
           for word in "The user asks about rivers, so I recall their lengths.".split()]


class Mock(http.server.ThreadingHTTPServer):
    """Serves on a free port of loopback until close()."""
    daemon_threads = True

    def __init__(self, page):
        super().__init__(("127.0.0.1", 0), Handler)
        self.page = pathlib.Path(page)
        self.requests = []      # bodies of chat requests
        self.cut = []           # prompts whose client left early
        self.key = None         # required if set
        self.pace_s = 0.005     # between chunks
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.begin = time.monotonic()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()

    def state(self):
        t = time.monotonic() - self.begin
        wave = 1 + (int(t * 2) % 5)
        return {"time_s": t, "running": wave, "waiting": int(t) % 3, "num_blocks": 512,
                "free_blocks": 512 - 60 * wave, "steps": int(t * 90), "preemptions": 1,
                "computed_tokens": int(t * 700), "prompt_tokens": int(t * 400), "cached_tokens": int(t * 300),
                "generated_tokens": int(t * 300), "drafted_tokens": int(t * 450),
                "accepted_tokens": int(t * 280), "busy_s": t * 0.8}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, kind="application/json", **more):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(data), "Connection": "close",
                            **more}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def fail(self, status, message, **more):
        self.send(status, {"error": {"message": message, "type": "x", "param": None, "code": None}}, **more)

    def allowed(self):
        key = self.server.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self.fail(401, "Incorrect API key provided.")
        return False

    def do_GET(self):
        if self.path == "/v1/models":
            if self.allowed():
                self.send(200, {"object": "list", "data": [{"id": "mock"}, {"id": "mock-other"}]})
        elif self.path == "/debug/engine":
            if self.allowed():
                self.events(lambda: [json.dumps(self.server.state())], repeat_s=0.1)
        else:
            name = "index.html" if self.path == "/" else self.path.removeprefix("/page/")
            file = self.server.page / name
            if "/" in name or not file.is_file():
                self.fail(404, "No such page.")
            else:
                self.send(200, file.read_bytes(), TYPES[file.suffix], **{"Content-Security-Policy": POLICY})

    def events(self, make, repeat_s=None):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                for data in make():
                    self.wfile.write(f"data: {data}\n\n".encode())
                    self.wfile.flush()
                    if repeat_s is None:
                        time.sleep(self.server.pace_s)
                if repeat_s is None:
                    return
                time.sleep(repeat_s)
        except OSError:
            if repeat_s is None:
                self.server.cut.append(self.server.requests[-1]["messages"][-1]["content"])

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return
        self.server.requests.append(body)
        prompt = body["messages"][-1]["content"]
        start = [chunk({"role": "assistant", "content": ""})]
        if prompt == "refuse":
            self.fail(400, "Invalid temperature value, the valid range of temperature is [0, 2]")
        elif prompt == "busy":
            self.fail(429, "The queue is full.", **{"Retry-After": 7})
        elif prompt == "break":
            self.events(lambda: [json.dumps(one) for one in start + texts("Half an ans")])
        elif prompt == "error within":
            self.events(lambda: [json.dumps(one) for one in [*start, {"error": {"message": "The engine failed."}}]])
        else:
            answer = {
                "rivers": THOUGHT + texts(MARKDOWN) + end(),
                "hostile": texts(HOSTILE) + end(),
                "weather": CALL + end("tool_calls"),
                "long": texts("word " * 2000) + end("length"),
            }.get(prompt, texts(f"You said: {prompt}") + end())
            self.events(lambda: [json.dumps(one) for one in start + answer] + ["[DONE]"])
