// The page: login, the list of chats, and the chat that is open.

import { Chat } from "./chat.js";
import { Composer } from "./composer.js";
import { call } from "./connection.js";

const FIRST_CHAT = "web:main";
const REFRESH_MS = 20_000;
const $ = (id) => document.getElementById(id);

let chat = null;
let refreshing = null;

const composer = new Composer({
  onPosted: (id, text, names) => {
    chat.posted(id, text, names);
    refreshSoon();
  },
  onRefused: showLogin,
});

start();

async function start() {
  const secret = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (secret) {
    history.replaceState(null, "", "/"); // the secret must not stay in the history
    try {
      await call("POST", "/api/login", { secret });
    } catch (error) {
      $("login-error").textContent = error.message;
    }
  }
  try {
    composer.commands = await call("GET", "/api/commands");
  } catch (error) {
    return showLogin(error.status === 401 ? "" : error.message);
  }
  return showApp();
}

function showLogin(problem = "") {
  chat?.close();
  chat = null;
  clearInterval(refreshing);
  $("app").hidden = true;
  $("login").hidden = false;
  if (problem) $("login-error").textContent = problem;
  $("token").focus();
}

function showApp() {
  $("login").hidden = true;
  $("login-error").textContent = "";
  $("app").hidden = false;
  refreshing = setInterval(() => { if (!document.hidden) refresh(); }, REFRESH_MS);
  openChat(chatFromHash() ?? remembered() ?? FIRST_CHAT);
}

function chatFromHash() {
  const found = /^#chat=(.+)$/.exec(location.hash)?.[1];
  return found ? decodeURIComponent(found) : null;
}

function remembered() {
  try {
    return localStorage.getItem("chat");
  } catch {
    return null;
  }
}

async function openChat(address) {
  chat?.close();
  closeSidebar();
  composer.address = address;
  composer.setRunning(false);
  history.replaceState(null, "", `#chat=${encodeURIComponent(address)}`);
  try {
    localStorage.setItem("chat", address);
  } catch { /* private windows forbid it */ }
  $("title").textContent = address;
  document.title = `${address} – Pumice`;
  const opened = new Chat(address, {
    say: (text) => composer.say(text),
    onRun: (running) => composer.setRunning(running),
    onChange: refreshSoon,
    onState: showState,
    onRefused: showLogin,
  });
  chat = opened;
  composer.focus();
  await opened.open();
  if (chat === opened) refresh();
}

function showState(state) {
  $("banner").hidden = state === "open";
  $("banner").textContent = state === "open" ? "" : "The connection is lost. Trying again…";
}

let soon = null;
function refreshSoon() {
  clearTimeout(soon);
  soon = setTimeout(refresh, 400);
}

async function refresh() {
  if (!chat) return;
  const { address } = chat;
  try {
    const [chats, sessions] = await Promise.all([
      call("GET", "/api/chats"),
      call("GET", `/api/sessions?chat=${encodeURIComponent(address)}`),
    ]);
    if (chat?.address !== address) return;
    drawChats(chats, address);
    drawSessions(sessions);
    await drawHealth();
  } catch (error) {
    if (error.status === 401) showLogin();
  }
}

function drawChats(chats, address) {
  if (!chats.some((row) => row.address === address)) chats = [{ address, title: "", last_at: null, running: false }, ...chats];
  chats.sort((one, other) => (other.last_at ?? "9").localeCompare(one.last_at ?? "9"));
  const open = chats.find((row) => row.address === address);
  composer.setRunning(open.running || chat.running);
  $("chats").replaceChildren(...chats.map((row) => {
    const item = entry(row.address, row.title, () => openChat(row.address));
    if (row.address === address) item.firstChild.setAttribute("aria-current", "page");
    if (row.running) item.firstChild.classList.add("running");
    return item;
  }));
}

function drawSessions(sessions) {
  $("sessions").replaceChildren(...sessions.slice(0, 20).map((session) => {
    const count = `${session.message_count} ${session.message_count === 1 ? "message" : "messages"}`;
    return entry(session.name || session.first_message || "Empty session", count, () => {
      closeSidebar();
      composer.say(`/resume ${session.id}`);
    });
  }));
}

function entry(title, detail, act) {
  const item = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const name = document.createElement("span");
  name.textContent = title;
  const more = document.createElement("small");
  more.textContent = detail;
  button.append(name, more);
  button.addEventListener("click", act);
  item.append(button);
  return item;
}

async function drawHealth() {
  const health = await call("GET", "/healthz");
  const deaf = Object.entries(health.channels).filter(([, channel]) => channel.state !== "working");
  $("health").className = `health ${health.status === "ok" ? "ok" : "bad"}`;
  $("health").textContent = health.status === "ok"
    ? "All channels work"
    : deaf.map(([name, channel]) => `${name}: ${channel.detail || channel.state}`).join("; ") || health.status;
}

function openSidebar() {
  $("sidebar").classList.add("open");
  $("shade").hidden = false;
  $("close-sidebar").focus();
}

function closeSidebar() {
  if (!$("sidebar").classList.contains("open")) return;
  $("sidebar").classList.remove("open");
  $("shade").hidden = true;
  $("open-sidebar").focus();
}

$("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("login-error").textContent = "";
  try {
    await call("POST", "/api/login", { token: $("token").value.trim() });
    $("token").value = "";
    await start();
  } catch (error) {
    $("login-error").textContent = error.message;
  }
});
$("new-chat").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("chat-name").value.trim().replace(/\s+/g, "-");
  if (!name) return $("chat-name").focus();
  $("chat-name").value = "";
  return openChat(name.includes(":") ? name : `web:${name}`);
});
$("new-session").addEventListener("click", () => {
  closeSidebar();
  composer.say("/new");
});
$("logout").addEventListener("click", async () => {
  await call("POST", "/api/logout").catch(() => null);
  showLogin();
});
$("open-sidebar").addEventListener("click", openSidebar);
$("close-sidebar").addEventListener("click", closeSidebar);
$("shade").addEventListener("click", closeSidebar);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") closeSidebar(); });
window.addEventListener("hashchange", () => {
  const address = chatFromHash();
  if (location.hash.startsWith("#login=")) start();
  else if (address && address !== chat?.address) openChat(address);
});
