// Markdown to DOM nodes. Text of a model never becomes markup: every node is made by name and filled with text.

const LONGEST_PARAGRAPH = 20_000;
const DEEPEST = 12;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( +)(.*)|)$/;
const QUOTE = /^ {0,3}> ?/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

function element(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

/** The whole text as a fragment. */
export function renderMarkdown(text) {
  const fragment = document.createDocumentFragment();
  for (const block of blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0)) fragment.append(block.node);
  return fragment;
}

/** An answer that grows: finished blocks are made once, only the last ones are made anew. */
export class MarkdownStream {
  constructor(target) {
    this.target = target;
    this.rest = "";
    this.tail = [];
    this.due = null;
    this.last = 0;
  }

  append(piece) {
    this.rest += piece;
    if (this.due !== null) return;
    const pause = Math.max(30, this.rest.length / 400); // a long open code block is drawn less often
    this.due = setTimeout(() => this.draw(), pause);
  }

  draw() {
    clearTimeout(this.due);
    this.due = null;
    for (const node of this.tail) node.remove();
    const lines = this.rest.split("\n");
    const found = blocks(lines, 0);
    // what stands before an empty line stays as it is; without one the next line may make something else of it, a table say
    let open = found.length - 1;
    while (open > 0 && lines[found[open].start - 1].trim() !== "") open -= 1;
    this.target.append(...found.map((block) => block.node));
    this.tail = found.slice(Math.max(open, 0)).map((block) => block.node);
    if (open > 0) this.rest = lines.slice(found[open].start).join("\n");
  }

  /** Replace all by the final text. */
  finish(text) {
    clearTimeout(this.due);
    this.due = null;
    this.target.replaceChildren(renderMarkdown(text));
  }
}

/** Top-level blocks: `{start, node}`, start being the first line. */
function blocks(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const start = at;
    const [node, next] = depth < DEEPEST ? oneBlock(lines, at, depth) : [element("p", lines.slice(at).join("\n")), lines.length];
    found.push({ start, node });
    at = next;
  }
  return found;
}

function oneBlock(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return codeBlock(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) return [inlineInto(element(`h${Math.min(heading[1].length + 2, 6)}`), heading[2] ?? ""), at + 1];
  if (RULE.test(line)) return [element("hr"), at + 1];
  if (QUOTE.test(line)) return quoteBlock(lines, at, depth);
  if (ITEM.test(line)) return listBlock(lines, at, depth);
  if (line.includes("|") && at + 1 < lines.length && TABLE_RULE.test(lines[at + 1]) && cells(line).length === cells(lines[at + 1]).length) {
    return tableBlock(lines, at);
  }
  return paragraph(lines, at);
}

function codeBlock(lines, at, fence) {
  const indent = /^ */.exec(lines[at])[0].length;
  const close = new RegExp(`^ {0,3}${fence[1][0]}{${fence[1].length},}[ \\t]*$`);
  let end = at + 1;
  while (end < lines.length && !close.test(lines[end])) end += 1;
  const body = lines.slice(at + 1, end).map((line) => line.replace(new RegExp(`^ {0,${indent}}`), ""));
  const language = fence[2].trim().split(/\s+/)[0];
  return [codeFigure(body.join("\n"), language), end + 1];
}

function codeFigure(text, language) {
  const code = element("code", text);
  const copy = element("button", "Copy");
  copy.type = "button";
  copy.className = "copy quiet";
  copy.setAttribute("aria-label", "Copy the code");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  const head = element("figcaption", element("span", language || "text"), copy);
  const pre = element("pre", code);
  pre.tabIndex = 0; // so that the keyboard can scroll it
  const figure = element("figure", head, pre);
  figure.className = "code";
  return figure;
}

function quoteBlock(lines, at, depth) {
  let end = at;
  while (end < lines.length && (QUOTE.test(lines[end]) || (lines[end].trim() !== "" && end > at && !startsBlock(lines[end])))) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [element("blockquote", ...blocks(inner, depth + 1).map((block) => block.node)), end];
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

function listBlock(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const mark = first[2].at(-1);
  const list = element(ordered ? "ol" : "ul");
  if (ordered && Number.parseInt(first[2], 10) !== 1) list.start = Number.parseInt(first[2], 10);
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length > first[1].length + 3 || item[2].at(-1) !== mark || RULE.test(lines[end])) break;
    const [body, next] = itemBody(lines, end, item);
    list.append(listItem(body, depth));
    end = next;
  }
  return end > at ? [list, end] : paragraph(lines, at);
}

/** The lines of one item without its indentation, and where the next begins. */
function itemBody(lines, at, item) {
  const indent = item[1].length + item[2].length + Math.min((item[3] ?? " ").length, 4);
  const body = [item[4] ?? ""];
  let end = at + 1;
  while (end < lines.length) {
    const line = lines[end];
    const spaces = /^ */.exec(line)[0].length;
    if (line.trim() === "") {
      let next = end + 1;
      while (next < lines.length && lines[next].trim() === "") next += 1;
      if (next >= lines.length || /^ */.exec(lines[next])[0].length < Math.min(indent, item[1].length + 2)) {
        const again = next < lines.length && ITEM.exec(lines[next]);
        return [body, again && again[1].length <= item[1].length + 1 ? next : end];
      }
      body.push("");
    } else if (spaces >= Math.min(indent, item[1].length + 2)) {
      body.push(line.slice(Math.min(spaces, indent)));
    } else if (startsBlock(line)) {
      break;
    } else {
      body.push(line.trimStart()); // a lazy continuation
    }
    end += 1;
  }
  return [body, end];
}

function listItem(body, depth) {
  const item = element("li");
  const task = /^\[([ xX])\] +/.exec(body[0]);
  if (task) {
    const box = element("input");
    box.type = "checkbox";
    box.disabled = true;
    box.checked = task[1] !== " ";
    item.className = "task";
    item.append(box, " ");
    body = [body[0].slice(task[0].length), ...body.slice(1)];
  }
  const inner = blocks(body, depth + 1).map((block) => block.node);
  for (const node of inner) {
    if (node.nodeName === "P" && (node === inner[0] || inner.length === 1)) item.append(...node.childNodes);
    else item.append(node);
  }
  return item;
}

function cells(line) {
  const parts = line.trim().replace(/^\|/, "").split(/(?<!\\)\|/);
  if (parts.length > 1 && parts.at(-1).trim() === "") parts.pop();
  return parts.map((part) => part.trim().replaceAll("\\|", "|"));
}

function tableBlock(lines, at) {
  const align = cells(lines[at + 1]).map((rule) => (rule.endsWith(":") ? (rule.startsWith(":") ? "center" : "right") : ""));
  const row = (line, name) => {
    const tr = element("tr");
    const parts = cells(line);
    align.forEach((side, column) => {
      const cell = inlineInto(element(name), parts[column] ?? "");
      if (side) cell.className = side;
      tr.append(cell);
    });
    return tr;
  };
  const body = element("tbody");
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim() !== "") {
    body.append(row(lines[end], "td"));
    end += 1;
  }
  const wrapper = element("div", element("table", element("thead", row(lines[at], "th")), body));
  wrapper.className = "table";
  wrapper.tabIndex = 0;
  return [wrapper, end];
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !startsBlock(lines[end])) end += 1;
  return [inlineInto(element("p"), lines.slice(at, end).map((line) => line.trimStart()).join("\n")), end];
}

// Inline text

const PLAIN = /[^\\`<![\]*_~\n:]+/y;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const DESTINATION = /\([ \t]*(?:<([^<>\n]*)>|([^\s()]*(?:\([^\s()]*\)[^\s()]*)*))(?:[ \t]+(?:"[^"]*"|'[^']*'))?[ \t]*\)/y;
const BARE = /\b(https?):\/\/[^\s<>"'`]+/y;
const PUNCTUATION = /[!-/:-@[-`{-~]/;

function inlineInto(target, text) {
  if (text.length > LONGEST_PARAGRAPH) target.append(text);
  else target.append(...new Inline(text).nodes());
  return target;
}

/** A pass over the text that makes pieces: nodes, and runs of * _ ~ that may become emphasis. */
class Inline {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.pieces = [];
    this.brackets = [];
    this.unclosed = new Set(); // lengths of backtick runs that have no partner further on
  }

  nodes() {
    while (this.at < this.text.length) this.#step();
    emphasise(this.pieces, 0);
    return this.pieces.map(asNode);
  }

  #step() {
    const character = this.text[this.at];
    if (character === "\\") this.#escape();
    else if (character === "`") this.#code();
    else if (character === "<") this.#autolink();
    else if (character === "[" || (character === "!" && this.text[this.at + 1] === "[")) this.#openBracket(character);
    else if (character === "]") this.#closeBracket();
    else if (character === "*" || character === "_" || character === "~") this.#run(character);
    else if (character === "\n") this.#lineEnd();
    else if (character === ":" || character === "!") this.#say(character);
    else this.#plain();
  }

  #say(text) {
    this.pieces.push({ node: document.createTextNode(text) });
    this.at += text.length;
  }

  #plain() {
    BARE.lastIndex = this.at;
    const link = BARE.exec(this.text);
    if (link) {
      const url = link[0].replace(/[.,;:!?*_~'"\])]+$/, (tail) => (tail.includes(")") && link[0].includes("(") ? ")" : ""));
      this.pieces.push({ node: anchor(url, [document.createTextNode(url)]) });
      this.at += url.length;
      return;
    }
    PLAIN.lastIndex = this.at;
    let text = PLAIN.exec(this.text)[0];
    const scheme = /\bhttps?$/.exec(text); // stop before a bare link, so that it is seen as one
    if (scheme && scheme.index > 0 && this.text.startsWith("://", this.at + text.length)) text = text.slice(0, scheme.index);
    this.#say(text);
  }

  #escape() {
    const next = this.text[this.at + 1] ?? "";
    if (next === "\n") {
      this.pieces.push({ node: element("br") });
      this.at += 2;
    } else if (PUNCTUATION.test(next)) {
      this.at += 1;
      this.#say(next);
    } else {
      this.#say("\\");
    }
  }

  #lineEnd() {
    const before = this.pieces.at(-1)?.node;
    if (before?.nodeType === Node.TEXT_NODE && before.data.endsWith("  ")) {
      before.data = before.data.trimEnd();
      this.pieces.push({ node: element("br") });
      this.at += 1;
    } else {
      this.#say("\n");
    }
  }

  #code() {
    const run = /`+/y;
    run.lastIndex = this.at;
    const ticks = run.exec(this.text)[0];
    const from = this.at + ticks.length;
    const end = this.unclosed.has(ticks.length) ? -1 : closingTicks(this.text, from, ticks.length);
    if (end < 0) {
      this.unclosed.add(ticks.length);
      this.#say(ticks);
      return;
    }
    let inside = this.text.slice(from, end).replaceAll("\n", " ");
    if (/^ .*[^ ].* $/.test(inside) || /^ [^ ] $/.test(inside)) inside = inside.slice(1, -1);
    this.pieces.push({ node: element("code", inside) });
    this.at = end + ticks.length;
  }

  #autolink() {
    AUTOLINK.lastIndex = this.at;
    const link = AUTOLINK.exec(this.text);
    if (!link) return this.#say("<");
    this.pieces.push({ node: anchor(link[1], [document.createTextNode(link[1].replace(/^mailto:/, ""))]) });
    this.at += link[0].length;
    return undefined;
  }

  #openBracket(character) {
    this.brackets.push({ piece: this.pieces.length, image: character === "!" });
    this.#say(character === "!" ? "![" : "[");
  }

  #closeBracket() {
    const open = this.brackets.pop();
    DESTINATION.lastIndex = this.at + 1;
    const destination = open && this.text[this.at + 1] === "(" ? DESTINATION.exec(this.text) : null;
    if (!destination) {
      this.#say("]");
      return;
    }
    const inside = this.pieces.splice(open.piece).slice(1);
    emphasise(inside, 0);
    const url = (destination[1] ?? destination[2]).replace(/\\([!-/:-@[-`{-~])/g, "$1");
    const children = inside.map(asNode);
    // an image of another site is offered as a link: loading it would tell that site who reads this
    if (open.image && !children.length) children.push(document.createTextNode(url));
    this.pieces.push({ node: anchor(url, open.image ? [document.createTextNode("🖼 "), ...children] : children) });
    if (!open.image) this.brackets = this.brackets.filter((bracket) => bracket.image); // no link within a link
    this.at += 1 + destination[0].length;
  }

  #run(character) {
    let end = this.at;
    while (this.text[end] === character) end += 1;
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[end] ?? " ";
    const left = !/\s/.test(after) && (!isPunctuation(after) || /\s/.test(before) || isPunctuation(before));
    const right = !/\s/.test(before) && (!isPunctuation(before) || /\s/.test(after) || isPunctuation(after));
    const word = character === "_";
    this.pieces.push({
      run: character,
      count: end - this.at,
      open: left && (!word || !right || isPunctuation(before)),
      close: right && (!word || !left || isPunctuation(after)),
    });
    this.at = end;
  }
}

function isPunctuation(character) {
  return /[\p{P}\p{S}]/u.test(character);
}

function closingTicks(text, from, length) {
  const run = /`+/g;
  run.lastIndex = from;
  for (let found = run.exec(text); found; found = run.exec(text)) if (found[0].length === length) return found.index;
  return -1;
}

function asNode(piece) {
  return piece.node ?? document.createTextNode(piece.run.repeat(piece.count));
}

/** Turns matching runs into em, strong and del, in place. */
function emphasise(pieces, from) {
  for (let close = from; close < pieces.length; close += 1) {
    const closer = pieces[close];
    if (!closer.run || !closer.close) continue;
    let open = close - 1;
    while (open >= from && !(pieces[open].run === closer.run && pieces[open].open && fits(pieces[open], closer))) open -= 1;
    if (open < from) continue;
    const opener = pieces[open];
    const width = closer.run === "~" ? opener.count : Math.min(opener.count, closer.count, 2);
    const name = closer.run === "~" ? "del" : width === 2 ? "strong" : "em";
    const inside = pieces.slice(open + 1, close).map(asNode);
    opener.count -= width;
    closer.count -= width;
    const left = opener.count ? [opener] : [];
    const right = closer.count ? [closer] : [];
    pieces.splice(open, close - open + 1, ...left, { node: element(name, ...inside) }, ...right);
    close = open + left.length; // the rest of the closer comes next
  }
}

function fits(opener, closer) {
  if (closer.run === "~") return opener.count === closer.count && closer.count <= 2;
  const odd = (opener.close || closer.open) && (opener.count + closer.count) % 3 === 0;
  return !odd || (opener.count % 3 === 0 && closer.count % 3 === 0);
}

function anchor(url, children) {
  let parsed = null;
  try {
    parsed = new URL(url);
  } catch {
    parsed = null;
  }
  if (!parsed || !["http:", "https:", "mailto:"].includes(parsed.protocol)) return element("span", ...children);
  const link = element("a", ...children);
  link.href = parsed.href;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return link;
}
