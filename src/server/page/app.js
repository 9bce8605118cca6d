// Wires the page.

import {Api} from "./api.js";
import {Chat} from "./chat.js";
import {byId, el} from "./dom.js";
import {EngineView} from "./engine.js";
import {History} from "./history.js";
import {Panels} from "./panels.js";
import {Settings} from "./settings.js";
import {ChatStore} from "./store.js";

const THEMES = [["", "as the system", "◐"], ["light", "light", "☀"], ["dark", "dark", "☾"]];

function storage() {
  try {
    return localStorage;
  } catch {
    return null;  // switched off: the page works, nothing is kept
  }
}

function setUpTheme() {
  const button = byId("theme");
  const root = document.documentElement;
  const show = () => {
    const [, name, sign] = THEMES.find(([value]) => value === (root.dataset.theme ?? ""));
    button.textContent = sign;
    button.setAttribute("aria-label", `Theme: ${name}`);
    button.title = `Theme: ${name}`;
  };
  button.addEventListener("click", () => {
    const now = THEMES.findIndex(([value]) => value === (root.dataset.theme ?? ""));
    const [value] = THEMES[(now + 1) % THEMES.length];
    if (value) root.dataset.theme = value;
    else delete root.dataset.theme;
    storage()?.setItem("fathom.theme", value);
    show();
  });
  show();
}

async function fillModels(api) {
  const select = byId("model");
  const kept = storage()?.getItem("fathom.model");
  try {
    const models = await api.models();
    select.replaceChildren(...models.map((id) => el("option", {value: id}, id)));
    if (models.includes(kept)) select.value = kept;
  } catch {
    select.replaceChildren(el("option", {value: ""}, "no model"));
  }
}

function setUpComposer(chat) {
  const prompt = byId("prompt");
  const fit = () => {
    prompt.style.height = "auto";
    prompt.style.height = `${Math.min(prompt.scrollHeight + 2, innerHeight * 0.4)}px`;
  };
  const submit = () => {
    if (chat.send(prompt.value)) {
      prompt.value = "";
      fit();
    }
  };
  prompt.addEventListener("input", fit);
  prompt.addEventListener("keydown", (event) => {
    // While a word is composed, Enter belongs to the input method.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  });
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  byId("stop").addEventListener("click", () => chat.stop());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chat.running && !event.defaultPrevented) chat.stop();
  });
  fit();
}

function main() {
  setUpTheme();
  const settings = new Settings();
  const api = new Api(() => settings.key());
  const store = new ChatStore(storage());
  let history = null;
  const chat = new Chat({api, settings, store, changed: () => history?.draw()});
  const engine = new EngineView(api);
  const panels = new Panels({engine: (open) => engine.setOpen(open)});
  history = new History({store, chat, chosen: () => {
    panels.closeHistory();
    byId("prompt").focus();
  }});
  setUpComposer(chat);
  byId("model").addEventListener("change", (event) =>
    storage()?.setItem("fathom.model", event.target.value));
  byId("set-key").addEventListener("change", () => {
    fillModels(api);
    engine.restart();
  });
  fillModels(api);
  byId("prompt").focus();
}

main();
