// How messages look.  Views borrow their message and redraw it when told.

import {copyText, count, el, seconds} from "./dom.js";
import {MarkdownView} from "./markdown.js";

const button = (text, onclick, more = {}) =>
  el("button", {type: "button", class: "quiet small", onclick, ...more}, text);

// Pretty if it is JSON by now, as it came if not.
function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

export function userView(message, actions) {
  const copy = button("Copy", () => copyText(message.content, copy));
  return el("article", {class: "message user", "aria-label": "You"},
            el("div", {class: "bubble"}, message.content),
            message.meta?.failed ? el("p", {class: "unanswered small"}, `Not answered: ${message.meta.failed}`) : null,
            el("div", {class: "actions"}, copy, button("Edit", actions.edit)));
}

export function toolView(message) {
  return el("article", {class: "message tool", "aria-label": "Result of a tool"},
            el("span", {class: "tag"}, "result"), el("pre", {tabindex: "0"}, message.content));
}

export function errorView(text, actions) {
  return el("div", {class: "message failure", role: "alert"},
            el("p", {}, text), actions.retry ? button("Try again", actions.retry) : null);
}

export class AnswerView {
  // actions: retry(), giveResults([{id, text}])
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.summary = el("summary", {}, "Thinking");
    this.reasoning = el("div", {class: "reasoning"});
    this.thinking = el("details", {class: "thinking", hidden: true}, this.summary, this.reasoning);
    this.text = el("div", {class: "text"});
    this.calls = el("div", {class: "calls"});
    this.foot = el("div", {class: "actions"});
    this.node = el("article", {class: "message answer", "aria-label": "Fathom"},
                   this.thinking, this.text, this.calls, this.foot);
    this.markdown = new MarkdownView(this.text);
    this.callNodes = [];
  }

  // `live`: the answer is still coming.
  update(live) {
    const {content, reasoning_content: reasoning, tool_calls: calls = []} = this.message;
    this.node.classList.toggle("live", live);
    this.node.setAttribute("aria-busy", String(live));
    if (reasoning) {
      this.thinking.hidden = false;
      if (this.reasoning.textContent.length !== reasoning.length) this.reasoning.textContent = reasoning;
      const ms = this.message.meta?.thinking_ms;
      this.summary.textContent = live && !content && calls.length === 0 ? "Thinking…"
        : ms ? `Thought for ${seconds(ms)}` : "Thinking";
    }
    this.markdown.update(content);
    calls.forEach((call, i) => this.updateCall(call, i));
    if (!live) this.finish();
  }

  updateCall(call, i) {
    if (!this.callNodes[i]) {
      const name = el("code", {class: "call-name"});
      const json = el("pre", {tabindex: "0"});
      this.callNodes[i] = {name, json};
      this.calls.append(el("section", {class: "call", "aria-label": "Call of a tool"},
                           el("div", {class: "call-head"}, el("span", {class: "tag"}, "call"), name), json));
    }
    this.callNodes[i].name.textContent = call.function.name;
    this.callNodes[i].json.textContent = prettyJson(call.function.arguments);
  }

  finish() {
    const copy = button("Copy", () => copyText(this.message.content, copy));
    const retry = button("Answer again", this.actions.retry);
    this.foot.replaceChildren(copy, retry, el("span", {class: "figures"}, figures(this.message.meta)));
  }

  // A form for the results of this answer's calls, which only the user has.
  askForResults() {
    const fields = this.message.tool_calls.map((call) => ({
      id: call.id,
      field: el("textarea", {rows: "2", class: "code", "aria-label": `Result of ${call.function.name}`,
                             placeholder: `Result of ${call.function.name}`}),
    }));
    const form = el("form", {class: "results"}, ...fields.map(({field}) => field),
                    el("button", {type: "submit", class: "quiet"}, "Give the results"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.remove();
      this.actions.giveResults(fields.map(({id, field}) => ({id, text: field.value})));
    });
    this.calls.append(form);
  }
}

const ENDS = {length: "cut at the token limit", content_filter: "filtered", stopped: "stopped", failed: "cut off by an error"};

function figures(meta) {
  if (!meta) return "";
  const parts = [];
  if (ENDS[meta.finish]) parts.push(ENDS[meta.finish]);
  if (meta.tokens > 0) parts.push(`${count(meta.tokens)} tokens`);
  if (meta.tokens_per_s > 0) parts.push(`${count(Math.round(meta.tokens_per_s))} tokens/s`);
  if (meta.ttft_ms > 0) parts.push(`first after ${seconds(meta.ttft_ms)}`);
  if (meta.prompt_tokens > 0) {
    const cached = meta.cached_tokens > 0 ? `, ${count(meta.cached_tokens)} cached` : "";
    parts.push(`prompt ${count(meta.prompt_tokens)}${cached}`);
  }
  return parts.join(" · ");
}
