// The API and the event stream of one chat.

export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

export async function call(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      credentials: "same-origin",
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused(0, "The host does not answer. Is it still running?");
  }
  const text = await response.text();
  let data = null;
  try {
    data = text ? JSON.parse(text) : null;
  } catch {
    throw new Refused(response.status, "The host gave an answer that this page does not understand.");
  }
  if (!response.ok) throw new Refused(response.status, data?.error ?? `The host answered ${response.status}.`);
  return data;
}

export function chatPath(address, rest) {
  return `/api/chats/${encodeURIComponent(address)}/${rest}`;
}

const NAMES = [
  "agent_start", "agent_settled", "message_start", "message_update", "message_end",
  "tool_execution_start", "tool_execution_update", "tool_execution_end",
  "queue_update", "retry_start", "retry_end", "compaction_start", "compaction_end",
  "status", "received", "delivered", "changed", "resync",
];
const RETRY_MS = 1500;
const HIDDEN_MS = 30_000; // a browser opens only six connections to one host, and every tab would hold one

/** Listens to a chat, reconnects by itself, and goes on where it was. */
export class EventStream {
  constructor(address, { onEvent, onState, onRefused }) {
    this.address = address;
    this.onEvent = onEvent;
    this.onState = onState;
    this.onRefused = onRefused;
    this.lastId = null;
    this.opened = false;
    this.source = null;
    this.timer = null;
    this.closed = false;
    this.whenVisible = () => this.#followVisibility();
    document.addEventListener("visibilitychange", this.whenVisible);
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    const query = this.lastId === null ? "current=1" : `after=${this.lastId}`;
    const source = new EventSource(`${chatPath(this.address, "events")}?${query}`);
    this.source = source;
    source.onopen = () => {
      this.onState("open");
      if (this.opened && this.lastId === null) this.onEvent("resync", {}); // without an id the host cannot tell what was missed
      this.opened = true;
    };
    source.onerror = () => this.#lost(source);
    for (const name of NAMES) {
      source.addEventListener(name, (event) => {
        if (this.closed || source !== this.source) return;
        if (event.lastEventId) this.lastId = event.lastEventId;
        this.onEvent(name, JSON.parse(event.data));
      });
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.whenVisible);
    this.source?.close();
  }

  #lost(source) {
    if (this.closed || source !== this.source) return;
    source.close();
    this.source = null;
    this.onState("lost");
    this.timer = setTimeout(() => this.#retry(), RETRY_MS);
  }

  async #retry() {
    try {
      await call("GET", "/api/commands"); // an event stream cannot say why it was refused
    } catch (error) {
      if (error.status === 401) return this.onRefused();
      if (!this.closed) this.timer = setTimeout(() => this.#retry(), RETRY_MS);
      return undefined;
    }
    if (!this.closed && this.source === null) this.open();
    return undefined;
  }

  #followVisibility() {
    clearTimeout(this.timer);
    if (document.hidden) {
      this.timer = setTimeout(() => {
        this.source?.close();
        this.source = null;
      }, HIDDEN_MS);
    } else if (this.source === null) {
      this.open();
    }
  }
}
