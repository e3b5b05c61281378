// @ts-check
/**
 * <code-upload>: files or a folder of this computer become the job's code (templates/jobs/new/upload.html).
 *
 * Files are known by their SHA-256. The console says which of them it lacks; small ones go together in packs, large ones
 * in pieces, from where they broke off. What comes out is an address, which is put into the form's field for code.
 */

import { announce } from "./announce.js";
import { csrfToken } from "./http.js";
import { fill, gettext, ngettext } from "./i18n.js";
import { Sha256 } from "./sha256.js";

/** @typedef {{ path: string, file: File }} Chosen */
/** @typedef {{ sha256: string, size: number, received: number }} Lacking */

const MIB = 1024 * 1024;
const AT_ONCE = 32 * MIB;
const PIECE = 4 * MIB;
const PACK = 8 * MIB;
const SMALL = MIB;
const TRIES = 5;
const LEFT_OUT = new Set([".git", ".DS_Store"]);

class Trouble extends Error {}

/** @param {string} url @param {RequestInit} options @returns {Promise<any>} */
async function ask(url, options) {
  for (let pause = 500; ; pause *= 2) {
    /** @type {Response | null} */
    let answer = null;
    try {
      answer = await fetch(url, { ...options, headers: { "X-CSRFToken": csrfToken(), Accept: "application/json", ...options.headers } });
    } catch (error) {
      if (options.signal?.aborted) throw error;
    }
    if (answer && ![429, 502, 503, 504].includes(answer.status)) {
      const said = await answer.json().catch(() => ({}));
      if (answer.ok) return said;
      throw Object.assign(new Trouble(said.detail || answer.statusText), { said });
    }
    if (pause > 500 * 2 ** TRIES) throw new Trouble(gettext("Can't reach the console. Select the same files again to resume."));
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** @param {Blob} blob @param {AbortSignal} signal */
async function digestOf(blob, signal) {
  if (blob.size <= AT_ONCE && globalThis.crypto?.subtle) {
    const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
    return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }
  const hash = new Sha256();
  for (let at = 0; at < blob.size; at += PIECE) {
    signal.throwIfAborted();
    hash.update(new Uint8Array(await blob.slice(at, at + PIECE).arrayBuffer()));
  }
  return hash.digest();
}

/** Before a file of a pack: its digest and its length. @param {Lacking} row */
function head(row) {
  const bytes = new Uint8Array(40);
  for (let i = 0; i < 32; i++) bytes[i] = parseInt(row.sha256.slice(2 * i, 2 * i + 2), 16);
  new DataView(bytes.buffer).setBigUint64(32, BigInt(row.size));
  return bytes;
}

/** Everything in what was dropped. @param {FileSystemEntry} entry @param {string} around @returns {Promise<Chosen[]>} */
async function filesOf(entry, around) {
  if (LEFT_OUT.has(entry.name)) return [];
  const path = around + entry.name;
  if (entry.isFile) {
    /** @type {File} */
    const file = await new Promise((resolve, reject) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject));
    return [{ path, file }];
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  const found = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    for (const each of some) found.push(...(await filesOf(each, `${path}/`)));
  }
}

/** A folder that was chosen is the tree itself: its own name is no part of it. @param {Chosen[]} chosen */
function below(chosen) {
  const top = `${chosen[0]?.path.split("/")[0]}/`;
  if (!chosen.every(({ path }) => path.startsWith(top))) return chosen;
  return chosen.map(({ path, file }) => ({ path: path.slice(top.length), file }));
}

class CodeUpload extends HTMLElement {
  /** @type {AbortController | null} */
  #under = null;
  #over = 0;

  connectedCallback() {
    this.addEventListener("change", this.#changed);
    this.addEventListener("click", this.#clicked);
    this.addEventListener("keydown", this.#pressed);
    this.addEventListener("dragenter", this.#hovered);
    this.addEventListener("dragover", this.#hovered);
    this.addEventListener("dragleave", this.#leaving);
    this.addEventListener("drop", this.#dropped);
    window.addEventListener("beforeunload", this.#leavesPage);
  }

  disconnectedCallback() {
    window.removeEventListener("beforeunload", this.#leavesPage);
    queueMicrotask(() => {
      if (!this.isConnected) this.#under?.abort(); // else it only went elsewhere in the form
    });
  }

  #changed = (/** @type {Event} */ event) => {
    event.stopPropagation(); // no field of the job
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || !box.files?.length) return;
    const isFolder = box.hasAttribute("data-folder");
    const chosen = [...box.files].map((file) => ({ path: (isFolder && file.webkitRelativePath) || file.name, file }));
    box.value = "";
    void this.#send(isFolder ? below(chosen) : chosen);
  };

  #clicked = (/** @type {Event} */ event) => {
    if (event.target instanceof Element && event.target.closest("[data-cancel]")) this.#under?.abort();
  };

  /** Enter opens the list of files here; in fields of the job it takes them. */
  #pressed = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) event.stopPropagation();
  };

  #hovered = (/** @type {DragEvent} */ event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (event.type === "dragenter") this.#over += 1;
    this.dataset.over = "true";
  };

  #leaving = () => {
    this.#over = Math.max(0, this.#over - 1);
    if (!this.#over) delete this.dataset.over;
  };

  #dropped = (/** @type {DragEvent} */ event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.#over = 0;
    delete this.dataset.over;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
    void this.#sendDropped(entries);
  };

  #leavesPage = (/** @type {BeforeUnloadEvent} */ event) => {
    if (this.#under) event.preventDefault();
  };

  /** @param {FileSystemEntry[]} entries */
  async #sendDropped(entries) {
    const found = [];
    for (const entry of entries) found.push(...(await filesOf(entry, "")));
    await this.#send(entries.length === 1 && entries[0]?.isDirectory ? below(found) : found);
  }

  /** @param {Chosen[]} chosen */
  async #send(chosen) {
    if (this.#under || !chosen.length) return;
    const under = new AbortController();
    this.#under = under;
    this.#wrong([]);
    try {
      const uri = await this.#sent(
        chosen.filter(({ path }) => !path.split("/").some((name) => LEFT_OUT.has(name))),
        under.signal,
      );
      this.#put(uri);
      const size = chosen.reduce((sum, { file }) => sum + file.size, 0);
      const told = fill(ngettext("%(count)s file uploaded (%(size)s MiB).", "%(count)s files uploaded (%(size)s MiB).", chosen.length), { count: chosen.length, size: (size / MIB).toFixed(1) });
      this.#say(told);
      announce(told);
    } catch (error) {
      const told = under.signal.aborted ? gettext("Upload cancelled. Data already sent is kept for 1 day.") : error instanceof Error ? error.message : String(error);
      this.#say(gettext("Nothing was uploaded."));
      this.#wrong([told]);
      announce(told);
    }
    this.#under = null;
    this.#progress(null);
  }

  /** @param {Chosen[]} chosen @param {AbortSignal} signal @returns {Promise<string>} */
  async #sent(chosen, signal) {
    /** @type {Map<string, Chosen>} */
    const byDigest = new Map();
    /** @type {Record<string, number>} */
    const blobs = {};
    const entries = [];
    let done = 0;
    for (const each of chosen) {
      signal.throwIfAborted();
      this.#say(fill(gettext("Reading files: %(count)s of %(all)s"), { count: ++done, all: chosen.length }));
      const sha256 = await digestOf(each.file, signal).catch((error) => {
        throw signal.aborted ? error : new Trouble(fill(gettext("%(name)s can't be read."), { name: each.path }));
      });
      byDigest.set(sha256, each);
      blobs[sha256] = each.file.size;
      const begins = await each.file.slice(0, 2).text();
      entries.push([each.path, begins === "#!" ? "program" : "file", sha256, each.file.size]);
    }
    const json = { "Content-Type": "application/json" };
    const { missing } = await ask(this.dataset.missingUrl ?? "", { method: "POST", body: JSON.stringify({ blobs }), headers: json, signal });
    await this.#sendAll(missing, byDigest, signal);
    const tree = { format: 1, entries };
    const made = await ask(this.dataset.treesUrl ?? "", { method: "POST", body: JSON.stringify(tree), headers: json, signal });
    return made.uri;
  }

  /** @param {Lacking[]} rows @param {Map<string, Chosen>} byDigest @param {AbortSignal} signal */
  async #sendAll(rows, byDigest, signal) {
    const total = rows.reduce((sum, row) => sum + row.size - row.received, 0);
    let sent = 0;
    /** @param {number} more */
    const more = (more) => {
      sent += more;
      this.#progress(total ? sent / total : 1);
      const values = { sent: (sent / MIB).toFixed(1), total: (total / MIB).toFixed(1) };
      this.#say(fill(gettext("Sending files: %(sent)s of %(total)s MiB"), values));
    };
    more(0);
    const isSmall = (/** @type {Lacking} */ row) => row.size <= SMALL && !row.received;
    await this.#sendPacks(rows.filter(isSmall), byDigest, signal, more);
    for (const row of rows.filter((each) => !isSmall(each))) await this.#sendOne(row, byDigest, signal, more);
  }

  /** @param {Lacking[]} rows @param {Map<string, Chosen>} byDigest @param {AbortSignal} signal @param {(more: number) => void} more */
  async #sendPacks(rows, byDigest, signal, more) {
    const headers = { "Content-Type": "application/octet-stream" };
    for (let at = 0; at < rows.length; ) {
      /** @type {BlobPart[]} */
      const parts = [];
      let size = 0;
      for (; at < rows.length && size < PACK; at++) {
        const row = /** @type {Lacking} */ (rows[at]);
        parts.push(head(row), /** @type {Chosen} */ (byDigest.get(row.sha256)).file);
        size += row.size;
      }
      await ask(this.dataset.packUrl ?? "", { method: "POST", body: new Blob(parts), headers, signal });
      more(size);
    }
  }

  /** @param {Lacking} row @param {Map<string, Chosen>} byDigest @param {AbortSignal} signal @param {(more: number) => void} more */
  async #sendOne(row, byDigest, signal, more) {
    const { path, file } = /** @type {Chosen} */ (byDigest.get(row.sha256));
    const url = (this.dataset.blobsUrl ?? "").replace("SHA256", row.sha256);
    for (let at = row.received; at < row.size; ) {
      const end = Math.min(at + PIECE, row.size);
      const headers = { "Content-Type": "application/octet-stream", "Content-Range": `bytes ${at}-${end - 1}/${row.size}` };
      const said = await ask(url, { method: "PUT", body: file.slice(at, end), headers, signal }).catch((error) => {
        if (error instanceof Trouble) error.message = `${path}: ${error.message}`;
        throw error;
      });
      more(said.received - at);
      at = said.received;
    }
  }

  /** The address becomes the job's code, by the first field that can take it. @param {string} uri */
  #put(uri) {
    const names = (this.dataset.into ?? "").split(" ");
    const fields = names.map((name) => this.closest("form")?.elements.namedItem(name));
    const field = fields.find((each) => each instanceof HTMLInputElement && !each.disabled && !each.readOnly);
    if (!(field instanceof HTMLInputElement)) throw new Trouble(fill(gettext("This job file has no code field. Insert %(uri)s where it belongs."), { uri }));
    field.value = uri;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  /** @param {string} text */
  #say(text) {
    const line = this.querySelector(".code-upload-status");
    if (line) line.textContent = text;
  }

  /** @param {string[]} texts */
  #wrong(texts) {
    const rows = texts.map((text) => Object.assign(document.createElement("li"), { className: "field-error", textContent: text }));
    this.querySelector(".code-upload-errors")?.replaceChildren(...rows);
  }

  /** How much of it is done; null for nothing under way. @param {number | null} part */
  #progress(part) {
    const [bar, cancel] = [this.querySelector("progress"), this.querySelector("[data-cancel]")];
    if (bar) {
      bar.hidden = part === null;
      bar.value = part ?? 0;
    }
    if (cancel instanceof HTMLElement) cancel.hidden = part === null;
  }
}

customElements.define("code-upload", CodeUpload);
