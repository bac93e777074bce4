// The messages of one chat: what was said, and the answer on its way.

import { call, chatPath, EventStream } from "./connection.js";
import { MarkdownStream, renderMarkdown } from "./markdown.js";

const PAGE = 50;
const NEAR_END = 120;
const SPOKEN = 400;
const MOST_OUTPUT = 20_000;
const ANSWER = "/answer ";

const time = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

function make(name, className, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...children);
  return node;
}

/** What of a message may change later. */
function reads(row) {
  return JSON.stringify([row.text, row.buttons]);
}

export class Chat {
  /** `say(text)` posts a text as the person; `onRun(running)`, `onChange()`, `onState(state)`, `onRefused()` tell the page. */
  constructor(address, hooks) {
    this.address = address;
    this.hooks = hooks;
    this.rows = new Map();
    this.live = null;
    this.running = false;
    this.log = document.getElementById("log");
    this.scroll = document.getElementById("scroll");
    this.earlier = document.getElementById("earlier");
    this.latest = document.getElementById("latest");
    this.announcer = document.getElementById("announce");
    this.aborter = new AbortController();
    this.stream = new EventStream(address, {
      onEvent: (name, data) => this.#event(name, data),
      onState: (state) => hooks.onState(state),
      onRefused: () => hooks.onRefused(),
    });
  }

  async open() {
    const { signal } = this.aborter;
    this.log.replaceChildren();
    this.log.setAttribute("aria-busy", "true");
    this.scroll.addEventListener("scroll", () => { if (!this.#resized()) this.#showLatest(); }, { signal, passive: true });
    this.earlier.addEventListener("click", () => this.#loadEarlier(), { signal });
    this.latest.addEventListener("click", () => this.toEnd(), { signal });
    this.sizes = new ResizeObserver(() => {
      this.size = this.#size();
      if (this.stuck) this.toEnd();
      else this.#showLatest();
    });
    this.sizes.observe(this.scroll);
    this.stuck = true;
    this.size = this.#size();
    this.stream.open(); // before the messages are asked for, so that nothing falls between
    await this.#loadNewest();
    this.log.removeAttribute("aria-busy");
  }

  close() {
    this.aborter.abort();
    this.sizes.disconnect();
    this.stream.close();
    this.log.replaceChildren();
  }

  /** A message that this page just posted. */
  posted(id, text, files) {
    this.#addRow({ id, role: "user", text, at: new Date().toISOString(), answers: [], buttons: [], files: [], names: files });
    this.toEnd();
  }

  toEnd() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
    this.stuck = true;
    this.#showLatest();
  }

  async #loadNewest() {
    try {
      const rows = await call("GET", `${chatPath(this.address, "messages")}?limit=${PAGE}`);
      for (const row of rows) this.#addRow(row);
      this.earlier.hidden = rows.length < PAGE;
      if (this.rows.size === 0 && !this.live) this.log.append(this.#greeting());
      this.toEnd();
    } catch (error) {
      if (error.status === 401) this.hooks.onRefused();
      else this.#problem(error.message);
    }
  }

  async #loadEarlier() {
    const first = [...this.rows.keys()].sort()[0];
    const height = this.scroll.scrollHeight;
    this.stuck = false;
    const query = `limit=${PAGE}&before=${encodeURIComponent(first)}`;
    const rows = await call("GET", `${chatPath(this.address, "messages")}?${query}`);
    for (const row of rows) this.#addRow(row);
    this.earlier.hidden = rows.length < PAGE;
    this.scroll.scrollTop += this.scroll.scrollHeight - height;
  }

  #event(name, data) {
    switch (name) {
      case "agent_start": return this.#runStarted();
      case "agent_settled": return this.#runSettled(data);
      case "message_start": return data.role === "assistant" ? this.#live().startMessage() : undefined;
      case "message_update": return this.#live().update(data.assistantMessageEvent);
      case "message_end": return data.message.role === "assistant" ? this.#live().endMessage(data.message) : undefined;
      case "tool_execution_start": return this.#live().toolStarted(data);
      case "tool_execution_update": return this.#live().toolSays(data.toolCallId, data.partialResult);
      case "tool_execution_end": return this.#live().toolEnded(data);
      case "retry_start": return this.#live().say(`The model does not answer; trying again (${data.attempt} of ${data.maxAttempts})…`);
      case "retry_end": return this.#live().say("");
      case "compaction_start": return this.live?.say("Summing up what was said before…"); // there is none between two runs
      case "compaction_end": return this.live?.say("");
      case "received": return this.#received(data);
      case "delivered": return this.#delivered(data);
      case "changed": return this.#addRow(data);
      case "status": return this.live?.say(data.line ?? "");
      case "resync": return this.#resync();
      default: return undefined;
    }
  }

  #live() {
    if (!this.live) {
      this.log.querySelector(".greeting")?.remove();
      this.live = new LiveAnswer(() => this.#grown());
      this.log.append(this.live.node);
      this.#grown();
    }
    return this.live;
  }

  #runStarted() {
    this.#setRunning(true);
    this.#live();
  }

  #runSettled() {
    this.#setRunning(false);
    this.live?.settle();
    if (this.live?.empty) {
      this.live.node.remove();
      this.live = null;
    }
  }

  #setRunning(running) {
    this.running = running;
    this.hooks.onRun(running);
  }

  #received(row) {
    this.#addRow(row);
    this.hooks.onChange();
  }

  #delivered(row) {
    if (this.rows.has(row.id)) return;
    if (this.live && row.answers.length) {
      const steps = this.live.steps;
      this.live.node.remove();
      this.live = this.running && !this.live.ended ? new LiveAnswer(() => this.#grown()) : null;
      this.#addRow(row, steps);
      if (this.live) this.log.append(this.live.node);
    } else {
      this.#addRow(row);
    }
    this.announcer.textContent = row.text.slice(0, SPOKEN);
    this.hooks.onChange();
  }

  async #resync() {
    this.live?.node.remove();
    this.live = null;
    this.#setRunning(false);
    await this.#loadNewest();
  }

  /** A message that is there already is shown as it reads now. */
  #addRow(row, steps) {
    if (row.role === "user" && row.text.startsWith(ANSWER)) return; // the question says what was answered
    const known = this.rows.get(row.id);
    if (known?.dataset.reads === reads(row)) return;
    const node = this.#rowNode(row, steps ?? known?.querySelector(".steps"));
    this.rows.set(row.id, node);
    if (known) {
      known.replaceWith(node);
      this.#grown();
      return;
    }
    this.log.querySelector(".greeting")?.remove();
    let after = null; // ids sort by time, and most rows are the newest
    for (const other of [...this.log.querySelectorAll("article[data-id]")].reverse()) {
      if (other.dataset.id < row.id) {
        after = other;
        break;
      }
    }
    if (after) after.after(node);
    else this.log.prepend(node);
    this.#markDays();
    this.#grown();
  }

  #rowNode(row, steps) {
    const mine = row.role === "user";
    const who = make("h2", "hidden", mine ? "You" : "Assistant");
    const at = make("time", "at", time.format(new Date(row.at)));
    at.dateTime = row.at;
    at.title = new Date(row.at).toLocaleString();
    const body = mine ? make("div", "body plain", row.text) : make("div", "body markdown", renderMarkdown(row.text));
    const node = make("article", `message ${mine ? "mine" : "theirs"} ${row.outcome === "error" ? "failed" : ""}`, who);
    node.dataset.id = row.id;
    node.dataset.reads = reads(row);
    node.dataset.day = new Date(row.at).toDateString();
    if (steps?.childElementCount) node.append(steps);
    if (row.text) node.append(body);
    for (const name of row.names ?? []) node.append(make("p", "file", name));
    for (const file of row.files) node.append(fileNode(file));
    if (row.buttons.length) node.append(this.#buttons(row.buttons));
    node.append(at);
    return node;
  }

  #buttons(lines) {
    const group = make("div", "buttons");
    for (const line of lines) {
      const row = make("div", "buttons-row");
      for (const button of line) {
        const node = make("button", "choice", button.label);
        node.type = "button";
        node.addEventListener("click", () => this.hooks.say(button.command));
        row.append(node);
      }
      group.append(row);
    }
    return group;
  }

  #markDays() {
    let before = new Date().toDateString(); // today needs no heading at the top
    for (const mark of this.log.querySelectorAll(".day")) mark.remove();
    for (const node of this.log.querySelectorAll("article[data-id]")) {
      if (node.dataset.day !== before) node.before(make("p", "day", day.format(new Date(node.dataset.day))));
      before = node.dataset.day;
    }
  }

  #greeting() {
    const greeting = make("div", "greeting", make("h2", "", "What can I do for you?"));
    const tries = make("div", "buttons-row");
    for (const text of ["What can you do?", "/help", "/model"]) {
      const node = make("button", "choice", text);
      node.type = "button";
      node.addEventListener("click", () => this.hooks.say(text));
      tries.append(node);
    }
    greeting.append(tries);
    return greeting;
  }

  #problem(text) {
    this.log.append(make("p", "error", text));
  }

  #grown() {
    if (this.stuck) this.scroll.scrollTop = this.scroll.scrollHeight;
  }

  #size() {
    return `${this.scroll.clientWidth} ${this.scroll.clientHeight}`;
  }

  /** Then the browser scrolled to keep its place in text that wraps anew, and nobody left the end. */
  #resized() {
    return this.#size() !== this.size;
  }

  #showLatest() {
    const below = this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight;
    this.stuck = below < NEAR_END;
    this.latest.hidden = this.stuck;
  }
}

function fileNode(file) {
  const link = make("a", "file", file.name);
  link.href = file.url;
  link.target = "_blank";
  link.rel = "noopener";
  if (!/\.(png|jpe?g|gif|webp)$/i.test(file.name)) {
    link.download = file.name;
    return link;
  }
  const image = make("img");
  image.src = file.url;
  image.alt = file.name;
  image.loading = "lazy";
  link.className = "picture";
  link.replaceChildren(image);
  return link;
}

/** The answer on its way: tools that run, text that streams. */
class LiveAnswer {
  constructor(onGrow) {
    this.onGrow = onGrow;
    this.steps = make("div", "steps");
    this.status = make("p", "working", make("span", "dots"), make("span", "label", "Working…"));
    this.node = make("article", "message theirs live", make("h2", "hidden", "Assistant, writing"), this.steps, this.status);
    this.tools = new Map();
    this.texts = [];
    this.text = null;
    this.ended = false;
  }

  get empty() {
    return !this.texts.length && !this.steps.childElementCount;
  }

  say(text) {
    this.status.lastChild.textContent = text || "Working…";
  }

  settle() {
    this.ended = true;
    this.status.remove();
  }

  startMessage() {
    this.text = null;
    this.say("");
  }

  update(event) {
    if (event.type === "text_delta") this.#stream().append(event.delta);
    else if (event.type === "thinking_start") this.say("Thinking…");
    else if (event.type === "text_start") this.say("Writing…");
    else if (event.type === "toolcall_start") this.say(`Preparing ${event.name}…`);
    this.onGrow();
  }

  endMessage(message) {
    const text = message.content.filter((block) => block.type === "text").map((block) => block.text).join("\n\n");
    if (text || this.text) this.#stream().finish(text);
    this.text = null;
    this.say("");
    this.onGrow();
  }

  toolStarted({ toolCallId, toolName, args }) {
    const what = Object.values(args ?? {}).find((value) => typeof value === "string") ?? "";
    const summary = make("summary", "", make("span", "tool", toolName), " ", make("span", "what", what.split("\n")[0].slice(0, 120)));
    const output = make("pre");
    const step = make("details", "step running", summary, output);
    this.tools.set(toolCallId, { step, output });
    this.steps.append(step);
    this.say(`Running ${toolName}…`);
    this.onGrow();
  }

  toolSays(id, text) {
    const tool = this.tools.get(id);
    if (tool) tool.output.textContent = text.slice(-MOST_OUTPUT);
  }

  toolEnded({ toolCallId, content, isError }) {
    const tool = this.tools.get(toolCallId);
    if (!tool) return;
    const text = content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
    tool.output.textContent = text.slice(-MOST_OUTPUT);
    tool.step.className = `step ${isError ? "failed" : "done"}`;
    this.say("");
    this.onGrow();
  }

  #stream() {
    if (!this.text) {
      const body = make("div", "body markdown");
      this.status.parentNode ? this.status.before(body) : this.node.append(body);
      this.text = new MarkdownStream(body);
      this.texts.push(this.text);
    }
    return this.text;
  }
}
