// Making elements.  Text goes in as text nodes only: nothing on this page parses HTML.

export const byId = (id) => document.getElementById(id);

// el("a", {class: "x", href: "/", onclick: f}, "text", otherNode)
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  setAll(node, attributes);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAll(node, attributes);
  node.append(...children);
  return node;
}

function setAll(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
}

export async function copyText(text, button) {
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = "Not allowed";  // no permission, or not a secure origin
  }
  const before = button.textContent;
  button.textContent = done;
  setTimeout(() => { button.textContent = before; }, 1500);
}

export const count = (number) => number.toLocaleString("en");

export function seconds(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
