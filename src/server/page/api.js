// The server's API, as this page uses it.  Paths are relative: it may lie behind a prefix.

import {readEvents} from "./sse.js";

export class ApiError extends Error {
  constructor(message, status = 0, retryAfterS = null) {
    super(message);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

async function errorOf(response) {
  let message = `The server answered ${response.status} ${response.statusText}`.trim() + ".";
  try {
    const body = await response.json();
    if (typeof body.error?.message === "string") message = body.error.message;
  } catch {
    // Not JSON: a proxy's page, perhaps.
  }
  if (response.status === 401) message += " Enter a key under Settings.";
  const wait = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  return new ApiError(message, response.status, Number.isNaN(wait) ? null : wait);
}

export class Api {
  constructor(keyOf) {
    this.keyOf = keyOf;  // () => string, may be empty
  }

  async fetch(path, options = {}) {
    const headers = {...options.headers};
    const key = this.keyOf();
    if (key) headers.Authorization = `Bearer ${key}`;
    let response;
    try {
      response = await fetch(path, {...options, headers});
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError("The server cannot be reached. Is it running?");
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  async models() {
    const list = await (await this.fetch("v1/models")).json();
    return (Array.isArray(list.data) ? list.data : []).map((model) => String(model.id));
  }

  // Yields the chunks of a streamed chat completion.  Throws ApiError, also for an error within the
  // stream and for a stream that ends too early; AbortError after signal.abort().
  async* chat(body, signal) {
    const response = await this.fetch("v1/chat/completions", {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: JSON.stringify({...body, stream: true, stream_options: {include_usage: true}}),
      signal,
    });
    let done = false;
    try {
      for await (const {data} of readEvents(response.body)) {
        if (data === "[DONE]") {
          done = true;
          break;
        }
        const chunk = JSON.parse(data);
        if (chunk.error) throw new ApiError(String(chunk.error.message ?? "The answer failed."));
        yield chunk;
      }
    } catch (error) {
      if (error instanceof ApiError || error.name === "AbortError") throw error;
      throw new ApiError("The connection broke before the answer was complete.");
    }
    if (!done) throw new ApiError("The connection ended before the answer was complete.");
  }

  // Yields the states of the engine for as long as the server lives.
  async* engine(signal) {
    const response = await this.fetch("debug/engine", {signal});
    for await (const {data} of readEvents(response.body)) yield JSON.parse(data);
  }
}
