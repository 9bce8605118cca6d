// Markdown of a model's answer to DOM nodes: the common part of CommonMark and GFM.
//
// Safe by construction: text becomes text nodes, only the elements named here are made, links are
// http, https or mailto, images are not fetched.  Work is linear in the text, whatever it is.

import {copyText, el} from "./dom.js";

const DEPTH_MAX = 8;       // of quotes, lists and emphasis; deeper is plain text
const COLUMNS_MAX = 64;    // of a table; one with more stays text
const LABEL_MAX = 1000;    // characters of a link's text
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})[ \t](.*)$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/;
const TABLE_LINE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

const isBlank = (line) => line.trim() === "";
const indentOf = (line) => line.length - line.trimStart().length;

function startsTable(lines, i) {
  return lines[i].includes("|") && i + 1 < lines.length && lines[i + 1].includes("-") &&
    lines[i + 1].includes("|") && TABLE_LINE.test(lines[i + 1]) && cells(lines[i + 1]).length <= COLUMNS_MAX;
}

// Does a line end a paragraph without a blank line before it?
function interrupts(lines, i) {
  const line = lines[i];
  const item = ITEM.exec(line);
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) ||
    (item !== null && /^([-*+]|1[.)])$/.test(item[2]) && item[0] !== line.trimEnd());
}

function takeFence(lines, i) {
  const [, mark, info] = FENCE.exec(lines[i]);
  const close = new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}\\s*$`);
  let end = i + 1;
  while (end < lines.length && !close.test(lines[end])) ++end;
  return {kind: "fence", language: info.trim().split(/\s/)[0], lines: lines.slice(i + 1, end),
          end: Math.min(end + 1, lines.length)};
}

function takeQuote(lines, i) {
  const inner = [];
  let end = i;
  for (; end < lines.length && QUOTE.test(lines[end]); ++end) inner.push(lines[end].replace(QUOTE, ""));
  return {kind: "quote", lines: inner, end};
}

// Items of one kind of marker; what is indented below an item belongs to it.
function takeList(lines, i) {
  const first = ITEM.exec(lines[i]);
  const ordered = /\d/.test(first[2]);
  const items = [];
  let base = 0;    // where the last item's marker is, and
  let indent = 0;  // its text; many models indent by two whatever the marker
  let end = i;
  while (end < lines.length) {
    const line = lines[end];
    const item = ITEM.exec(line);
    if (items.length > 0 && !isBlank(line) && indentOf(line) >= Math.min(indent, base + 2)) {
      items.at(-1).push(line.slice(Math.min(indent, indentOf(line))));
    } else if (item && /\d/.test(item[2]) === ordered && !RULE.test(line)) {
      base = item[1].length;
      indent = base + item[2].length + 1;
      items.push([line.slice(item[0].length)]);
    } else if (isBlank(line) && end + 1 < lines.length && !isBlank(lines[end + 1]) &&
               (indentOf(lines[end + 1]) >= Math.min(indent, base + 2) || sameList(lines[end + 1], ordered))) {
      items.at(-1).push("");
    } else if (!isBlank(line) && !isBlank(lines[end - 1]) && !interrupts(lines, end)) {
      items.at(-1).push(line.trimStart());  // a paragraph that goes on at the margin
    } else {
      break;
    }
    ++end;
  }
  return {kind: "list", ordered, start: ordered ? Number.parseInt(first[2], 10) : 1, items, end};
}

function sameList(line, ordered) {
  const item = ITEM.exec(line);
  return item !== null && /\d/.test(item[2]) === ordered && !RULE.test(line);
}

function takeTable(lines, i) {
  let end = i + 2;
  while (end < lines.length && lines[end].includes("|") && !isBlank(lines[end])) ++end;
  return {kind: "table", head: lines[i], align: lines[i + 1], rows: lines.slice(i + 2, end), end};
}

function takeBlock(lines, i) {
  const line = lines[i];
  if (FENCE.test(line)) return takeFence(lines, i);
  const heading = HEADING.exec(line);
  if (heading) {
    return {kind: "heading", level: heading[1].length, text: heading[2].trim().replace(/(?<=^| )#{1,6}$/, ""), end: i + 1};
  }
  if (RULE.test(line)) return {kind: "rule", end: i + 1};
  if (QUOTE.test(line)) return takeQuote(lines, i);
  if (ITEM.test(line)) return takeList(lines, i);
  if (startsTable(lines, i)) return takeTable(lines, i);
  let end = i + 1;
  while (end < lines.length && !isBlank(lines[end]) && !interrupts(lines, end)) ++end;
  return {kind: "paragraph", text: lines.slice(i, end).join("\n"), end};
}

function takeBlocks(lines) {
  const blocks = [];
  for (let i = 0; i < lines.length;) {
    if (isBlank(lines[i])) {
      ++i;
      continue;
    }
    const block = takeBlock(lines, i);
    block.source = lines.slice(i, block.end).join("\n");
    i = block.end;
    blocks.push(block);
  }
  return blocks;
}

function cells(line) {
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return text.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function makeTable(block) {
  const sides = cells(block.align).map((cell) =>
    cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : null);
  const row = (line, tag, width) => {
    const texts = cells(line).slice(0, width);
    while (texts.length < width) texts.push("");
    return el("tr", {}, ...texts.map((text, i) => el(tag, {class: sides[i]}, ...inline(text))));
  };
  const width = cells(block.head).length;
  return el("div", {class: "table", tabindex: "0", role: "region", "aria-label": "Table"},
            el("table", {}, el("thead", {}, row(block.head, "th", width)),
               el("tbody", {}, ...block.rows.map((line) => row(line, "td", width)))));
}

function makeFence(block) {
  const text = block.lines.join("\n");
  const copy = el("button", {type: "button", class: "quiet small", onclick: () => copyText(text, copy)}, "Copy");
  return el("div", {class: "code-block"},
            el("div", {class: "code-head"}, el("span", {}, block.language || "text"), copy),
            el("pre", {tabindex: "0"}, el("code", {}, text)));
}

function makeList(block, depth) {
  const loose = block.items.some((lines) => lines.some((line, i) => i > 0 && line === "" && i + 1 < lines.length));
  const items = block.items.map((lines) => {
    const nodes = render(lines, depth + 1);
    // A tight item's text needs no paragraph around it.
    return el("li", {}, ...nodes.flatMap((node) =>
      (!loose && node.tagName === "P" ? [...node.childNodes] : [node])));
  });
  return block.ordered ? el("ol", {start: block.start === 1 ? null : block.start}, ...items)
                       : el("ul", {}, ...items);
}

function makeBlock(block, depth) {
  switch (block.kind) {
    case "fence": return makeFence(block);
    // The page's own headings are h1 and h2.
    case "heading": return el(`h${Math.min(block.level + 2, 6)}`, {}, ...inline(block.text));
    case "rule": return el("hr");
    case "quote": return el("blockquote", {}, ...render(block.lines, depth + 1));
    case "list": return makeList(block, depth);
    case "table": return makeTable(block);
    default: return el("p", {}, ...inline(block.text));
  }
}

function render(lines, depth) {
  if (depth > DEPTH_MAX) return [el("p", {}, lines.join("\n"))];
  return takeBlocks(lines).map((block) => makeBlock(block, depth));
}

const PAIRS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];
const isSpace = (c) => c === undefined || c === "" || /\s/.test(c);
const isWord = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);

// Text with its emphasis, code and links as nodes.
export function inline(text, depth = 0) {
  const nodes = [];
  let plain = "";
  const missing = new Set();  // marks that have no end in the rest: never looked for again
  const flush = () => {
    if (plain) nodes.push(plain);
    plain = "";
  };
  for (let i = 0; i < text.length;) {
    const found = special(text, i, missing, depth);
    if (found) {
      if (found.node) {
        flush();
        nodes.push(found.node);
      } else {
        plain += found.text;
      }
      i = found.end;
    } else {
      plain += text[i++];
    }
  }
  flush();
  return nodes;
}

function special(text, i, missing, depth) {
  switch (text[i]) {
    case "\\":
      return /[!-/:-@[-`{-~]/.test(text[i + 1] ?? "") ? {text: text[i + 1], end: i + 2} : null;
    case "\n": return {node: el("br"), end: i + 1};
    case "`": return codeSpan(text, i, missing);
    case "!": return text[i + 1] === "[" ? link(text, i + 1, depth) : null;
    case "[": return link(text, i, depth);
    case "<": return address(text, i);
    case "h": return !isWord(text[i - 1]) && bareAddress(text, i);
    case "*": case "_": case "~": return emphasis(text, i, missing, depth);
    default: return null;
  }
}

function codeSpan(text, i, missing) {
  const mark = /^`+/.exec(text.slice(i, i + 64))[0];
  if (!missing.has(mark)) {
    const more = new RegExp(`(?<!\`)${mark}(?!\`)`, "g");
    more.lastIndex = i + mark.length;
    const end = more.exec(text);
    if (end) {
      const code = text.slice(i + mark.length, end.index).replaceAll("\n", " ");
      const padded = code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "";
      return {node: el("code", {}, padded ? code.slice(1, -1) : code), end: end.index + mark.length};
    }
    missing.add(mark);
  }
  return {text: mark, end: i + mark.length};
}

function emphasis(text, i, missing, depth) {
  if (depth >= DEPTH_MAX) return null;
  for (const [mark, tag] of PAIRS) {
    if (!text.startsWith(mark, i) || missing.has(mark)) continue;
    const under = mark[0] === "_";
    if (isSpace(text[i + mark.length]) || (under && isWord(text[i - 1]))) continue;
    for (let end = text.indexOf(mark, i + mark.length + 1); ; end = text.indexOf(mark, end + 1)) {
      if (end < 0) {
        missing.add(mark);
        break;
      }
      const after = text[end + mark.length];
      // One star within two belongs to the strong text.
      if (mark.length === 1 && (after === mark || text[end - 1] === mark)) continue;
      if (isSpace(text[end - 1]) || (under && isWord(after))) continue;
      if (mark.length === 2 && after === mark[0]) continue;  // ***: the last two close
      const inner = text.slice(i + mark.length, end);
      return {node: el(tag, {}, ...inline(inner, depth + 1)), end: end + mark.length};
    }
  }
  // Not an opening: pass the whole run, so that a half of it is not tried.
  const run = /^(\*+|_+|~+)/.exec(text.slice(i, i + 256))[0];
  return {text: run, end: i + run.length};
}

function safeUrl(text) {
  return /^(https?:\/\/|mailto:)[^\s<>]+$/i.test(text) ? text : null;
}

function anchor(url, ...children) {
  return el("a", {href: url, target: "_blank", rel: "noopener noreferrer nofollow"}, ...children);
}

function link(text, i, depth) {
  const length = depth < DEPTH_MAX ? text.slice(i, i + LABEL_MAX).indexOf("](") : -1;
  if (length < 0) return null;
  const middle = i + length;
  const label = text.slice(i + 1, middle);
  if (label.includes("[")) return null;
  const target = /^\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)?)>?(?:\s+"[^"\n]{0,500}")?\s*\)/
    .exec(text.slice(middle + 1, middle + 4096));
  if (!target) return null;
  const url = safeUrl(target[1]);
  const end = middle + 1 + target[0].length;
  // A link that we will not follow stays readable as it was written.
  if (!url) return {text: text.slice(i, end), end};
  return {node: anchor(url, ...inline(label || url, depth + 1)), end};
}

function address(text, i) {
  const match = /^<([^\s<>]+)>/.exec(text.slice(i, i + 2048));
  const url = match && safeUrl(match[1]);
  return url ? {node: anchor(url, url), end: i + match[0].length} : null;
}

function bareAddress(text, i) {
  const match = /^https?:\/\/[^\s<>"'`*|]+/.exec(text.slice(i, i + 2048));
  if (!match) return null;
  let url = match[0].replace(/[.,;:!?]+$/, "");
  if (url.endsWith(")") && !url.includes("(")) url = url.slice(0, -1);
  return {node: anchor(url, url), end: i + url.length};
}

// Shows a text that grows.  Blocks that did not change keep their nodes, so selections in them and
// the work of earlier updates stay.
export class MarkdownView {
  constructor(node) {
    this.node = node;
    this.shown = [];  // {source, node}
  }

  update(text) {
    const blocks = takeBlocks(text.replace(/\r\n?/g, "\n").replaceAll("\t", "    ").split("\n"));
    let same = 0;
    while (same < blocks.length && same < this.shown.length &&
           this.shown[same].source === blocks[same].source) ++same;
    for (const {node} of this.shown.splice(same)) node.remove();
    for (const block of blocks.slice(same)) {
      const node = makeBlock(block, 0);
      this.shown.push({source: block.source, node});
      this.node.append(node);
    }
  }
}
