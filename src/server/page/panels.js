// What opens at the sides: the chats on the left, engine or settings on the right.  On a wide
// window they lie beside the conversation; on a narrow one they cover it, so Escape closes them and
// focus goes in and back.

import {byId} from "./dom.js";

const PANELS = ["engine", "settings"];

export class Panels {
  // opened: {panel id: function(open)} for panels that want to know.
  constructor(opened) {
    this.opened = opened;
    for (const id of PANELS) {
      byId(`open-${id}`).addEventListener("click", () => this.set(id, byId(id).hidden));
      byId(id).querySelector(".close").addEventListener("click", () => this.set(id, false));
      byId(id).addEventListener("keydown", (event) => this.onEscape(event, () => this.set(id, false)));
    }
    const history = byId("open-history");
    history.addEventListener("click", () => {
      this.showHistory(history.getAttribute("aria-expanded") !== "true");
    });
    byId("history").addEventListener("keydown", (event) => this.onEscape(event, () => {
      if (this.closeHistory()) history.focus();
    }));
  }

  onEscape(event, close) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    close();
  }

  set(id, open) {
    for (const other of PANELS) {
      if (other !== id && open) this.show(other, false);
    }
    this.show(id, open);
    byId(open ? `${id}-title` : `open-${id}`).focus();
  }

  show(id, open) {
    byId(id).hidden = !open;
    byId(`open-${id}`).setAttribute("aria-expanded", String(open));
    document.body.classList.toggle("with-panel", PANELS.some((one) => !byId(one).hidden));
    this.opened[id]?.(open);
  }

  showHistory(open) {
    byId("open-history").setAttribute("aria-expanded", String(open));
    document.body.classList.toggle("with-history", open);
    if (open) byId("new-chat").focus();
  }

  // Returns whether it was open over the conversation.
  closeHistory() {
    const open = document.body.classList.contains("with-history");
    this.showHistory(false);
    return open;
  }
}
