// The settings form: kept in localStorage, turned into fields of a request.  The key is kept for
// the tab only.

import {byId} from "./dom.js";

const KEY = "fathom.settings.v1";
const SESSION_KEY = "fathom.key";
const NUMBERS = ["temperature", "top_p", "max_tokens", "seed"];

const EXAMPLE_TOOLS = [{
  type: "function",
  function: {
    name: "get_weather",
    description: "Returns the weather of a city.",
    parameters: {
      type: "object",
      properties: {city: {type: "string", description: "Name of the city."}},
      required: ["city"],
    },
  },
}];

function read(storage, key) {
  try {
    return storage().getItem(key);
  } catch {
    return null;  // storage is switched off
  }
}

function write(storage, key, value) {
  try {
    storage().setItem(key, value);
  } catch {
    // Not kept, then.
  }
}

export class Settings {
  constructor() {
    this.form = byId("settings-form");
    this.load();
    this.form.addEventListener("input", () => this.changed());
    this.form.addEventListener("reset", () => setTimeout(() => this.changed()));
    byId("sample-tools").addEventListener("click", () => {
      this.form.elements.tools.value = JSON.stringify(EXAMPLE_TOOLS, null, 2);
      this.changed();
    });
  }

  load() {
    let values = {};
    try {
      values = JSON.parse(read(() => localStorage, KEY) ?? "{}") ?? {};
    } catch {
      // Damaged: the defaults.
    }
    for (const field of this.form.elements) {
      if (field.name && field.name !== "key" && typeof values[field.name] === "string") {
        field.value = values[field.name];
      }
    }
    this.form.elements.key.value = read(() => sessionStorage, SESSION_KEY) ?? "";
    this.tools();
  }

  changed() {
    const values = {};
    for (const field of this.form.elements) {
      if (field.name && field.name !== "key") values[field.name] = field.value;
    }
    write(() => localStorage, KEY, JSON.stringify(values));
    write(() => sessionStorage, SESSION_KEY, this.key());
    this.tools();
  }

  key() {
    return this.form.elements.key.value.trim();
  }

  // The tools, null for none; says in the form what is wrong.
  tools() {
    const text = this.form.elements.tools.value.trim();
    let tools = null;
    let error = "";
    if (text) {
      try {
        tools = JSON.parse(text);
        if (!Array.isArray(tools)) error = "The tools must be a JSON array.";
      } catch (problem) {
        error = `The tools are not JSON: ${problem.message}`;
      }
    }
    byId("tools-error").textContent = error;
    this.form.elements.tools.setAttribute("aria-invalid", String(error !== ""));
    return error ? null : tools;
  }

  // First field that a browser finds wrong, or null.
  invalid() {
    const field = [...this.form.elements].find((one) => one.willValidate && !one.checkValidity());
    if (field) return `${field.labels[0].textContent}: ${field.validationMessage}`;
    return byId("tools-error").textContent || null;
  }

  system() {
    return this.form.elements.system.value.trim();
  }

  // What a request says besides model and messages.
  request() {
    const fields = this.form.elements;
    const body = {};
    for (const name of NUMBERS) {
      if (fields[name].value !== "") body[name] = Number(fields[name].value);
    }
    const stop = fields.stop.value.split("\n").filter((line) => line !== "");
    if (stop.length > 0) body.stop = stop;
    if (fields.thinking.value === "off") {
      body.thinking = {type: "disabled"};
    } else if (fields.thinking.value) {
      body.thinking = {type: "enabled"};
      body.reasoning_effort = fields.thinking.value;
    }
    const tools = this.tools();
    if (tools && tools.length > 0) body.tools = tools;
    return body;
  }
}
