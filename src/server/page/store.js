// Chats in localStorage: bounded, the least recently used go first.
//
// A chat: {id, title, updated (ms), messages}.  A message is one of the API's (role, content,
// reasoning_content, tool_calls, tool_call_id) with `meta`, which is never sent.

const KEY = "fathom.chats.v1";
export const CHATS_MAX = 100;
export const CHARACTERS_MAX = 2_000_000;  // browsers give an origin about 5 million
const ROLES = new Set(["user", "assistant", "tool"]);

const newId = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");

function isCall(call) {
  return typeof call?.id === "string" && typeof call.function?.name === "string" &&
    typeof call.function.arguments === "string";
}

function isMessage(message) {
  return ROLES.has(message?.role) && typeof message.content === "string" &&
    (message.reasoning_content === undefined || typeof message.reasoning_content === "string") &&
    (message.tool_calls === undefined || (Array.isArray(message.tool_calls) && message.tool_calls.every(isCall)));
}

function isChat(chat) {
  return typeof chat?.id === "string" && typeof chat.title === "string" &&
    Number.isFinite(chat.updated) && Array.isArray(chat.messages) && chat.messages.every(isMessage);
}

export class ChatStore {
  constructor(storage) {
    this.storage = storage;  // null: nothing is kept
    this.chats = [];         // newest first
    this.load();
  }

  load() {
    let chats = [];
    try {
      chats = JSON.parse(this.storage?.getItem(KEY) ?? "[]");
    } catch {
      // Damaged: begin anew rather than never start.
    }
    this.chats = Array.isArray(chats) ? chats.filter(isChat) : [];
  }

  get(id) {
    return this.chats.find((chat) => chat.id === id);
  }

  create() {
    return {id: newId(), title: "New chat", updated: Date.now(), messages: []};
  }

  // Puts a chat to the front and writes all; returns whether it could be kept.
  save(chat) {
    chat.updated = Date.now();
    const first = chat.messages.find((message) => message.role === "user");
    if (first) chat.title = first.content.trim().replace(/\s+/g, " ").slice(0, 80) || "New chat";
    this.chats = [chat, ...this.chats.filter((other) => other.id !== chat.id)];
    return this.write();
  }

  remove(id) {
    this.chats = this.chats.filter((chat) => chat.id !== id);
    this.write();
  }

  clear() {
    this.chats = [];
    this.write();
  }

  // Drops the oldest until the rest fits; the newest stays even if it alone is too large to keep.
  write() {
    this.chats.length = Math.min(this.chats.length, CHATS_MAX);
    for (;;) {
      const text = JSON.stringify(this.chats);
      if (text.length <= CHARACTERS_MAX || this.chats.length <= 1) {
        try {
          this.storage?.setItem(KEY, text);
          return this.storage !== null;
        } catch {
          if (this.chats.length <= 1) return false;  // the quota is used up by others
        }
      }
      this.chats.pop();
    }
  }

  exported() {
    return JSON.stringify({format: "fathom-chats", version: 1, chats: this.chats}, null, 1);
  }

  // Adds the chats of an export; returns their number.  Throws an Error for people.
  import(text) {
    let file;
    try {
      file = JSON.parse(text);
    } catch {
      throw new Error("This file is not JSON.");
    }
    if (file?.format !== "fathom-chats" || !Array.isArray(file.chats) || !file.chats.every(isChat)) {
      throw new Error("This file is not an export of this page.");
    }
    const ids = new Set(file.chats.map((chat) => chat.id));
    this.chats = [...this.chats.filter((chat) => !ids.has(chat.id)), ...file.chats]
      .sort((a, b) => b.updated - a.updated);
    this.write();
    return file.chats.length;
  }
}
