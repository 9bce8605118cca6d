// The list of chats: choose, delete, export, import.

import {byId, el} from "./dom.js";
import {CHATS_MAX} from "./store.js";

export class History {
  constructor({store, chat, chosen}) {
    Object.assign(this, {store, chat, chosen});
    byId("new-chat").addEventListener("click", () => {
      chat.show(store.create());
      chosen();
    });
    byId("export").addEventListener("click", () => this.export());
    byId("import").addEventListener("click", () => byId("import-file").click());
    byId("import-file").addEventListener("change", (event) => this.import(event.target));
    byId("delete-all").addEventListener("click", async () => {
      if (!await confirmed(`Delete all ${store.chats.length} chats of this browser?`)) return;
      store.clear();
      chat.show(store.create());
      byId("new-chat").focus();
    });
    this.draw();
  }

  draw() {
    const {chats} = this.store;
    byId("chats").replaceChildren(...chats.map((one) => {
      const current = one.id === this.chat.chat.id;
      return el("li", {},
        el("button", {type: "button", class: "chat", "aria-current": current ? "true" : null,
                      onclick: () => { this.chat.show(one); this.chosen(); }}, one.title),
        el("button", {type: "button", class: "quiet icon", "aria-label": `Delete “${one.title}”`,
                      onclick: () => this.remove(one)}, "✕"));
    }));
    byId("kept").textContent = `Kept in this browser only. ${chats.length} of at most ${CHATS_MAX} chats.`;
    for (const id of ["export", "delete-all"]) byId(id).disabled = chats.length === 0;
  }

  async remove(one) {
    if (!await confirmed(`Delete “${one.title}”?`)) return;
    this.store.remove(one.id);
    if (one.id === this.chat.chat.id) this.chat.show(this.store.chats[0] ?? this.store.create());
    else this.draw();
    byId("new-chat").focus();
  }

  export() {
    const url = URL.createObjectURL(new Blob([this.store.exported()], {type: "application/json"}));
    el("a", {href: url, download: "fathom-chats.json"}).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  async import(input) {
    const file = input.files[0];
    input.value = "";
    if (!file) return;
    try {
      const number = this.store.import(await file.text());
      this.chat.say(`${number} chats imported.`);
      this.draw();
    } catch (error) {
      this.chat.fail(error.message, false);
    }
  }
}

function confirmed(question) {
  const dialog = byId("confirm");
  byId("confirm-text").textContent = question;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), {once: true});
  });
}
