// Server-sent events from a fetch: EventSource can neither POST nor send a key.

const LINE_MAX = 8 << 20;  // characters; a longer line is not from our server

// Yields {event, data} of each event; ends with the stream.
export async function* readEvents(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let event = "";
  let data = [];
  try {
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      rest += value;
      if (rest.length > LINE_MAX) throw new Error("An event of the server is too long.");
      // A lone CR at the end may be half of CRLF.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop();
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield {event: event || "message", data: data.join("\n")};
          event = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "data") data.push(text);
        if (field === "event") event = text;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
