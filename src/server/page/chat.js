// The conversation on the page: sends, streams, stops, and keeps what was said in the store.

import {AnswerBuilder} from "./answer.js";
import {byId, el} from "./dom.js";
import {AnswerView, errorView, toolView, userView} from "./messages.js";

const REDRAW_MS = 60;
const SPOKEN_MAX = 2000;  // characters of an answer that are read out
const SUGGESTIONS = ["What is the capital of France?", "What is 47 + 38?", "Tell me a short story about a lighthouse."];

export class Chat {
  // `changed` is called when the store has changed or another chat is shown.
  constructor({api, settings, store, changed}) {
    Object.assign(this, {api, settings, store, changed});
    this.log = byId("log");
    this.chat = store.chats[0] ?? store.create();
    this.running = null;  // the AbortController of the answer that is coming
    this.follow = true;
    this.log.addEventListener("scroll", () => {
      const below = this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight;
      this.follow = below < 40;
    }, {passive: true});
    this.draw();
  }

  show(chat) {
    this.stop();
    this.chat = chat;
    this.draw();
    this.changed();
  }

  draw() {
    this.follow = true;
    const {messages} = this.chat;
    this.log.replaceChildren(...messages.map((message, i) => this.viewOf(message, i)));
    if (messages.length === 0) this.greet();
    this.scroll();
  }

  greet() {
    this.log.append(el("div", {class: "greeting"},
      el("p", {class: "lead"}, "What would you like to know?"),
      el("div", {class: "row"}, ...SUGGESTIONS.map((text) =>
        el("button", {type: "button", class: "quiet", onclick: () => this.send(text)}, text)))));
  }

  viewOf(message, index) {
    if (message.role === "user") return userView(message, {edit: () => this.edit(index)});
    if (message.role === "tool") return toolView(message);
    const view = this.answerView(message);
    view.update(false);
    if (message.tool_calls && index === this.chat.messages.length - 1) view.askForResults();
    return view.node;
  }

  answerView(message) {
    return new AnswerView(message, {
      retry: () => this.retry(message),
      giveResults: (results) => {
        for (const {id, text} of results) this.add({role: "tool", tool_call_id: id, content: text});
        this.answer();
      },
    });
  }

  add(message) {
    this.chat.messages.push(message);
    this.log.append(this.viewOf(message, this.chat.messages.length - 1));
    this.keep();
  }

  keep() {
    this.store.save(this.chat);
    this.changed();
  }

  // Puts a message of the user back into the box, and forgets what came from it on.
  edit(index) {
    this.stop();
    byId("prompt").value = this.chat.messages[index].content;
    this.chat.messages.length = index;
    this.keep();
    this.draw();
    byId("prompt").dispatchEvent(new Event("input"));
    byId("prompt").focus();
  }

  retry(message) {
    this.stop();
    const index = message ? this.chat.messages.indexOf(message) : this.chat.messages.length;
    if (index < 0) return;
    this.chat.messages.length = index;
    if (this.chat.messages.at(-1)?.role === "user") delete this.chat.messages.at(-1).meta;
    this.draw();
    this.answer();
  }

  // Returns whether the text was taken.
  send(text) {
    if (this.running || text.trim() === "") return false;
    const wrong = this.settings.invalid();
    if (wrong) {
      this.fail(`Settings, ${wrong}`, false);
      return false;
    }
    this.log.querySelector(".greeting")?.remove();
    this.log.querySelector("form.results")?.remove();
    if (this.chat.messages.at(-1)?.meta?.failed) this.draw();  // the note takes the place of the notice
    // The API wants a result for every call before anything else is said.
    for (const call of this.chat.messages.at(-1)?.tool_calls ?? []) {
      this.add({role: "tool", tool_call_id: call.id, content: "(no result)"});
    }
    this.follow = true;
    this.add({role: "user", content: text});
    this.answer();
    return true;
  }

  stop() {
    this.running?.abort();
  }

  body() {
    const system = this.settings.system();
    const messages = this.chat.messages.map(({meta, ...message}) => message);
    if (system) messages.unshift({role: "system", content: system});
    return {model: byId("model").value || undefined, messages, ...this.settings.request()};
  }

  async answer() {
    this.log.querySelectorAll(".failure").forEach((node) => node.remove());
    const chat = this.chat;
    const running = new AbortController();
    const builder = new AnswerBuilder(() => performance.now());
    const view = this.answerView(builder.message);
    this.running = running;
    this.buttons(true);
    view.update(true);
    this.log.append(view.node);
    this.scroll();
    this.say("Answering.");
    let failure = null;
    let drawn = 0;
    try {
      for await (const chunk of this.api.chat(this.body(), running.signal)) {
        builder.add(chunk);
        if (performance.now() - drawn > REDRAW_MS) {
          view.update(true);
          this.scroll();
          drawn = performance.now();
        }
      }
    } catch (error) {
      if (!running.signal.aborted) failure = error;
    }
    const message = builder.finish(running.signal.aborted ? "stopped" : failure ? "failed" : null);
    this.running = null;
    this.buttons(false);
    if (builder.isEmpty) {
      view.node.remove();
      const asked = chat.messages.at(-1);
      if (failure && asked?.role === "user") {
        asked.meta = {failed: failureText(failure)};
        this.store.save(chat);
      }
    } else {
      chat.messages.push(message);
      this.store.save(chat);
      view.update(false);
      if (message.tool_calls && !failure) view.askForResults();
    }
    this.changed();
    if (chat !== this.chat) return;
    if (failure) this.fail(failureText(failure), true);
    this.say(failure ? "" : message.content.slice(0, SPOKEN_MAX) || "The answer is complete.");
    this.scroll();
  }

  fail(text, again) {
    this.log.append(errorView(text, {retry: again ? () => this.retryFailed() : null}));
    this.follow = true;
    this.scroll();
  }

  // A part of an answer that failed is not worth continuing from.
  retryFailed() {
    const last = this.chat.messages.at(-1);
    this.retry(last?.role === "assistant" ? last : null);
  }

  buttons(running) {
    const had = document.activeElement;
    byId("send").hidden = running;
    byId("stop").hidden = !running;
    if (had === byId("send")) byId("stop").focus();
    if (had === byId("stop")) byId("prompt").focus();
  }

  say(text) {
    byId("status").textContent = text;
  }

  scroll() {
    if (this.follow) this.log.scrollTop = this.log.scrollHeight;
  }
}

function failureText(error) {
  const wait = error.retryAfterS ? ` Try again in ${error.retryAfterS} s.` : "";
  return `${error.message}${wait}`;
}
