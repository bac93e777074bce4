// The message field: growing, completing commands, taking files.

import { call, chatPath } from "./connection.js";

const MOST_BYTES = 20_000_000;
const MOST_FILES = 20;
const MOST_COMPLETIONS = 8;

export class Composer {
  /** `onPosted(id, text, names)` after the host took a message; `onRefused()` when the login is gone. */
  constructor({ onPosted, onRefused }) {
    this.onPosted = onPosted;
    this.onRefused = onRefused;
    this.address = null;
    this.commands = [];
    this.files = [];
    this.chosen = -1;
    this.form = document.getElementById("composer");
    this.text = document.getElementById("text");
    this.list = document.getElementById("completions");
    this.tray = document.getElementById("attachments");
    this.error = document.getElementById("composer-error");
    this.stopButton = document.getElementById("stop");
    this.picker = document.getElementById("files");
    this.#listen();
  }

  focus() {
    if (matchMedia("(pointer: fine)").matches) this.text.focus();
  }

  setRunning(running) {
    this.stopButton.hidden = !running;
  }

  /** Post a text, and the files that wait; false when the host did not take it. */
  async say(text, { withFiles = false } = {}) {
    const files = withFiles ? this.files : [];
    this.error.textContent = "";
    try {
      const body = {
        text,
        images: files.filter((file) => file.image).map(({ name, data, mimeType }) => ({ name, data, mimeType })),
        files: files.filter((file) => !file.image).map(({ name, data, mimeType }) => ({ name, data, mimeType })),
      };
      const { id } = await call("POST", chatPath(this.address, "messages"), body);
      this.onPosted(id, text, files.map((file) => file.name));
      return true;
    } catch (error) {
      if (error.status === 401) this.onRefused();
      this.error.textContent = error.message;
      return false;
    }
  }

  #listen() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.text.addEventListener("input", () => {
      this.#grow();
      this.#complete();
    });
    this.text.addEventListener("keydown", (event) => this.#key(event));
    this.text.addEventListener("blur", () => this.#hideList());
    this.stopButton.addEventListener("click", () => this.say("/stop"));
    document.getElementById("attach").addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => {
      this.#take([...this.picker.files]);
      this.picker.value = "";
    });
    this.text.addEventListener("paste", (event) => {
      const files = [...event.clipboardData.files];
      if (files.length) {
        event.preventDefault();
        this.#take(files);
      }
    });
    const main = document.querySelector("main.chat");
    main.addEventListener("dragover", (event) => event.preventDefault());
    main.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#take([...event.dataTransfer.files]);
    });
  }

  async #submit() {
    const text = this.text.value.trim();
    if (!text && !this.files.length) return;
    const kept = this.text.value;
    const files = this.files;
    this.text.value = "";
    this.#hideList();
    this.#grow();
    if (await this.say(text, { withFiles: true })) {
      this.files = this.files.filter((file) => !files.includes(file));
      this.#drawTray();
    } else if (!this.text.value) {
      this.text.value = kept; // nothing that was typed is lost
      this.#grow();
    }
  }

  #key(event) {
    if (event.isComposing) return;
    if (!this.list.hidden && this.#listKey(event)) return;
    const coarse = matchMedia("(pointer: coarse)").matches;
    if (event.key === "Enter" && !event.shiftKey && !coarse) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === "Escape" && !this.stopButton.hidden) {
      this.say("/stop");
    }
  }

  #listKey(event) {
    const count = this.list.childElementCount;
    if (event.key === "ArrowDown") this.#choose((this.chosen + 1) % count);
    else if (event.key === "ArrowUp") this.#choose((this.chosen + count - 1) % count);
    else if (event.key === "Escape") this.#hideList();
    else if (event.key === "Tab" || (event.key === "Enter" && this.#typed() !== this.list.children[this.chosen].dataset.name)) {
      this.#accept(this.list.children[this.chosen].dataset.name);
    } else return false;
    event.preventDefault();
    return true;
  }

  #typed() {
    return /^\/(\w*)$/.exec(this.text.value)?.[1];
  }

  #complete() {
    const typed = this.#typed();
    const found = typed === undefined ? [] : this.commands.filter((command) => command.name.startsWith(typed)).slice(0, MOST_COMPLETIONS);
    this.list.replaceChildren(...found.map((command, index) => this.#option(command, index)));
    this.list.hidden = !found.length;
    this.text.setAttribute("aria-expanded", String(found.length > 0));
    if (found.length) this.#choose(0);
    else this.text.removeAttribute("aria-activedescendant");
  }

  #option(command, index) {
    const option = document.createElement("li");
    option.id = `completion-${index}`;
    option.role = "option";
    option.dataset.name = command.name;
    const name = document.createElement("b");
    name.textContent = `/${command.name}`;
    option.append(name, ` ${command.description}`);
    option.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      this.#accept(command.name);
    });
    return option;
  }

  #choose(index) {
    this.chosen = index;
    [...this.list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
    this.text.setAttribute("aria-activedescendant", `completion-${index}`);
    this.list.children[index].scrollIntoView({ block: "nearest" });
  }

  #accept(name) {
    this.text.value = `/${name} `;
    this.#hideList();
    this.text.focus();
  }

  #hideList() {
    this.list.hidden = true;
    this.text.setAttribute("aria-expanded", "false");
    this.text.removeAttribute("aria-activedescendant");
  }

  #grow() {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight, 220)}px`;
  }

  async #take(files) {
    this.error.textContent = "";
    for (const file of files) {
      const size = this.files.reduce((sum, other) => sum + other.size, file.size);
      if (size > MOST_BYTES || this.files.length >= MOST_FILES) {
        this.error.textContent = `${file.name} is too much: at most ${MOST_FILES} files and 20 MB go with one message.`;
        return;
      }
      this.files.push(await read(file));
      this.#drawTray();
    }
    this.focus();
  }

  #drawTray() {
    this.tray.replaceChildren(...this.files.map((file) => this.#chip(file)));
  }

  #chip(file) {
    const chip = document.createElement("li");
    if (file.image) {
      const picture = document.createElement("img");
      picture.src = `data:${file.mimeType};base64,${file.data}`;
      picture.alt = "";
      chip.append(picture);
    }
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "icon";
    remove.textContent = "✕";
    remove.setAttribute("aria-label", `Remove ${file.name}`);
    remove.addEventListener("click", () => {
      this.files = this.files.filter((other) => other !== file);
      this.#drawTray();
    });
    chip.append(file.name, remove);
    return chip;
  }
}

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => {
      const image = ["image/png", "image/jpeg", "image/gif", "image/webp"].includes(file.type);
      const data = reader.result.slice(reader.result.indexOf(",") + 1);
      resolve({ name: file.name || "pasted", size: file.size, mimeType: file.type || null, image, data });
    };
    reader.readAsDataURL(file);
  });
}
