// @ts-check
/**
 * <job-terminal>: a shell beside a replica (templates/jobs/job/terminal.html, jobs/access/gateway/terminals.py).
 *
 * The shell lives on the server; this is a view of it, which comes back after a lost connection where it left off.
 */

import { Terminal } from "../vendor/xterm-6.0.0/xterm.js";
import { FitAddon } from "../vendor/xterm-addon-fit-0.11.0/addon-fit.js";
import { announce } from "./announce.js";
import { postForm } from "./http.js";
import { fill, gettext } from "./i18n.js";
import { allowSpanStyles, withSheets } from "./sheets.js";

const AGAIN_MS = [200, 500, 1000, 2000, 5000];
const RESIZE_MS = 50;
const encoder = new TextEncoder();

allowSpanStyles();

/**
 * A custom property's colour inside an element, as xterm.js reads it.
 * @param {string} name
 * @param {HTMLElement} within
 */
function colour(name, within) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  within.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  const canvas = document.createElement("canvas").getContext("2d");
  if (!canvas) return found;
  canvas.fillStyle = found; // whatever notation it is in, read back as pixels
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
  return `rgb(${red}, ${green}, ${blue})`;
}

class JobTerminal extends HTMLElement {
  #terminal = new Terminal({ cursorBlink: true, fontSize: 13, scrollback: 10_000, screenReaderMode: false });
  #fit = new FitAddon();
  /** @type {WebSocket | null} */
  #socket = null;
  #place = -1;
  #typing = false;
  #over = false;
  #tries = 0;
  #timer = 0;
  #resizer = new ResizeObserver(() => {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#fit.fit(), RESIZE_MS);
  });

  connectedCallback() {
    const screen = this.#part(".terminal-screen");
    const style = getComputedStyle(screen);
    this.#terminal.options.fontFamily = style.fontFamily;
    this.#terminal.options.theme = {
      background: colour("--terminal-back", this),
      foreground: colour("--terminal-text", this),
      cursor: colour("--terminal-text", this),
      selectionBackground: "rgba(128, 160, 255, 0.35)",
    };
    this.#terminal.loadAddon(this.#fit);
    withSheets(() => this.#terminal.open(screen));
    this.#terminal.textarea?.setAttribute("aria-label", this.dataset.label ?? "");
    this.#fit.fit();
    this.#terminal.onData((/** @type {string} */ text) => this.#send(encoder.encode(text)));
    this.#terminal.onBinary((/** @type {string} */ text) => this.#send(Uint8Array.from(text, (letter) => letter.charCodeAt(0))));
    this.#terminal.onResize((/** @type {{cols: number, rows: number}} */ size) => this.#tellSize(size));
    this.#terminal.attachCustomKeyEventHandler((/** @type {KeyboardEvent} */ event) => this.#key(event));
    this.#resizer.observe(screen);
    void this.#begin();
  }

  disconnectedCallback() {
    this.#over = true;
    this.#resizer.disconnect();
    this.#socket?.close();
    this.#terminal.dispose();
  }

  /**
   * @param {string} selector
   * @returns {HTMLElement}
   */
  #part(selector) {
    const found = this.querySelector(selector);
    if (!(found instanceof HTMLElement)) throw new Error(selector);
    return found;
  }

  /** @param {string} text */
  #say(text) {
    const said = this.#part(".terminal-said");
    said.textContent = text;
    said.hidden = !text;
  }

  async #begin() {
    if (!this.dataset.keyOf) {
      try {
        const { role = "", index = "", newUrl = "" } = this.dataset;
        const answer = await postForm(newUrl, { role, index });
        if (!answer.key) return this.#end(answer.problem);
        this.dataset.keyOf = answer.key;
        const address = `${this.dataset.pageUrl}&open=${answer.key}`;
        // An address that asks for a new one would ask again, when what stands above the terminal is fetched.
        if (new URLSearchParams(location.search).has("role")) return location.replace(address);
        history.replaceState(history.state, "", address);
      } catch {
        return this.#end(gettext("No response from the console. Reload the page."));
      }
    }
    this.#connect();
  }

  #connect() {
    const { cols, rows } = this.#terminal;
    const query = new URLSearchParams({ columns: String(cols), rows: String(rows) });
    if (this.#place >= 0) query.set("from", String(this.#place));
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/terminals/${this.dataset.keyOf}/socket?${query}`);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => this.#hear(data));
    socket.addEventListener("close", () => this.#lost());
    this.#socket = socket;
  }

  /** @param {string | ArrayBuffer} data */
  #hear(data) {
    if (typeof data !== "string") {
      this.#place += data.byteLength;
      this.#terminal.write(new Uint8Array(data));
      return;
    }
    const told = JSON.parse(data);
    if (told.ended !== undefined) {
      const words = JSON.parse(document.getElementById("terminal-ends")?.textContent ?? "{}");
      this.#end(words[told.ended] ?? told.ended);
      return;
    }
    if (this.#place !== told.at && this.#place >= 0) this.#terminal.reset();
    this.#place = told.at;
    this.#typing = told.typing;
    this.#tries = 0;
    this.#terminal.options.disableStdin = !told.typing;
    this.#say(told.typing ? "" : gettext("Read-only: only the user who opened this terminal can type."));
    if (told.typing) this.#terminal.focus();
    document.body.dispatchEvent(new CustomEvent("terminal:opened"));
  }

  #lost() {
    if (this.#over) return;
    if (this.#place < 0 && this.#tries >= AGAIN_MS.length) {
      this.#end(gettext("Can't reach the terminal. Reload the page."));
      return;
    }
    const pause = AGAIN_MS[Math.min(this.#tries, AGAIN_MS.length - 1)];
    this.#tries += 1;
    if (this.#place >= 0) this.#say(gettext("Connection lost; the shell is still running. Reconnecting …"));
    window.setTimeout(() => !this.#over && this.#connect(), pause);
  }

  /** @param {string} why */
  #end(why) {
    this.#over = true;
    this.#terminal.options.disableStdin = true;
    this.#terminal.options.cursorBlink = false;
    this.#say(fill(gettext("This terminal has ended. %(why)s"), { why }));
    announce(why);
    this.#socket?.close();
  }

  /** @param {Uint8Array<ArrayBuffer>} data */
  #send(data) {
    if (this.#typing && this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  /** @param {{cols: number, rows: number}} size */
  #tellSize({ cols, rows }) {
    if (this.#typing && this.#socket?.readyState === WebSocket.OPEN) {
      this.#socket.send(JSON.stringify({ columns: cols, rows }));
    }
  }

  /**
   * Ctrl-Shift-C and -V copy and paste as in other terminals; Ctrl-C with a selection copies. Whether xterm.js
   * goes on with the key.
   * @param {KeyboardEvent} event
   */
  #key(event) {
    if (event.type !== "keydown" || !event.ctrlKey) return true;
    const key = event.key.toLowerCase();
    if (key === "c" && (event.shiftKey || this.#terminal.hasSelection())) {
      if (!this.#terminal.hasSelection()) return false;
      void navigator.clipboard?.writeText(this.#terminal.getSelection());
      this.#terminal.clearSelection();
      event.preventDefault();
      return false;
    }
    return !(key === "v" && event.shiftKey); // the browser pastes, which xterm.js hears
  }
}

customElements.define("job-terminal", JobTerminal);
