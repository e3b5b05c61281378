// @ts-check
/**
 * <job-files>: a folder of a job (templates/jobs/job/files_list.html). Uploads with progress, by choosing or dropping;
 * everything else on the page is links and forms.
 */

import { announce, toast } from "./announce.js";
import { ask } from "./confirm.js";
import { csrfToken } from "./http.js";
import { fill, gettext } from "./i18n.js";
import { recall, remember } from "./storage.js";

const MIB = 1024 * 1024;
const SHOWS_HIDDEN = "files-hidden";

/**
 * What a request was answered: its status, and its JSON, if it is any.
 * @param {XMLHttpRequest} request
 */
function answerOf(request) {
  try {
    return { status: request.status, said: JSON.parse(request.responseText) };
  } catch {
    return { status: request.status, said: {} };
  }
}

class JobFiles extends HTMLElement {
  #busy = false;
  /** @type {XMLHttpRequest | null} */
  #request = null;
  #over = 0;

  connectedCallback() {
    this.addEventListener("change", this.#changed);
    this.addEventListener("click", this.#clicked);
    const shows = this.querySelector(".files-show-hidden");
    if (shows instanceof HTMLInputElement) shows.checked = recall(SHOWS_HIDDEN) === "on";
    if (!this.#chooser()) return;
    this.addEventListener("dragenter", this.#entered);
    this.addEventListener("dragover", this.#hovered);
    this.addEventListener("dragleave", this.#leaving);
    this.addEventListener("drop", this.#dropped);
    window.addEventListener("beforeunload", this.#leavesPage);
  }

  disconnectedCallback() {
    window.removeEventListener("beforeunload", this.#leavesPage);
    this.#request?.abort();
  }

  /** @returns {HTMLInputElement | null} */
  #chooser() {
    return this.querySelector('input[type="file"]');
  }

  #changed = (/** @type {Event} */ event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement)) return;
    if (box.type === "file") {
      const files = [...(box.files ?? [])];
      box.value = "";
      void this.#send(files);
    }
    if (box.classList.contains("files-show-hidden")) {
      remember(SHOWS_HIDDEN, box.checked ? "on" : "off");
      this.#chooseShown((chosen) => chosen);
    }
    if (box.classList.contains("files-all")) this.#chooseShown(() => box.checked);
  };

  /** What is not shown is never among the chosen. @param {(wasChosen: boolean) => boolean} isChosen */
  #chooseShown(isChosen) {
    for (const each of this.querySelectorAll('input[name="chosen"]')) {
      if (each instanceof HTMLInputElement) each.checked = each.checkVisibility() && isChosen(each.checked);
    }
  }

  #clicked = (/** @type {Event} */ event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-key-of]") : null;
    const form = this.querySelector("#files-rename form");
    if (!(button instanceof HTMLElement) || !(form instanceof HTMLFormElement)) return;
    const [key, name] = ["key", "name"].map((each) => form.elements.namedItem(each));
    if (key instanceof HTMLInputElement) key.value = button.dataset.keyOf ?? "";
    if (name instanceof HTMLInputElement) name.value = button.dataset.nameOf ?? "";
  };

  #entered = (/** @type {DragEvent} */ event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.#over += 1;
    this.dataset.over = "true";
  };

  #hovered = (/** @type {DragEvent} */ event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
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
    void this.#send([...event.dataTransfer.files]);
  };

  #leavesPage = (/** @type {BeforeUnloadEvent} */ event) => {
    if (this.#busy) event.preventDefault();
  };

  /** One after the other. @param {File[]} files */
  async #send(files) {
    if (this.#busy) {
      toast(gettext("Wait for the current uploads to finish."), { level: "error" });
      return;
    }
    this.#busy = true;
    let sent = 0;
    for (const file of files) {
      if (await this.#sendOne(file)) sent += 1;
    }
    this.#busy = false;
    if (!sent) return;
    announce(fill(gettext("Uploaded: %(count)s of %(all)s."), { count: sent, all: files.length }));
    document.body.dispatchEvent(new CustomEvent("files:changed"));
  }

  /** @param {File} file */
  async #sendOne(file) {
    const most = Number(this.dataset.most);
    if (file.size > most) {
      const values = { name: file.name, most: Math.floor(most / MIB) };
      toast(fill(gettext("%(name)s is too large: the limit is %(most)s MiB per file."), values), { level: "error" });
      return false;
    }
    let { status, said } = await this.#put(file, false);
    if (status === 409 && said.code === "exists") {
      const question = fill(gettext("%(name)s already exists. Replace it?"), { name: file.name });
      if (!(await ask(question, gettext("Replace")))) return false;
      ({ status, said } = await this.#put(file, true));
    }
    if (status === 201) return true;
    const why = said.detail || gettext("Can't reach the console, or the upload was interrupted.");
    toast(fill(gettext("%(name)s was not uploaded: %(why)s"), { name: file.name, why }), { level: "error" });
    return false;
  }

  /**
   * @param {File} file
   * @param {boolean} replace
   * @returns {Promise<{ status: number, said: any }>}
   */
  #put(file, replace) {
    const row = document.createElement("li");
    const bar = document.createElement("progress");
    const stop = document.createElement("button");
    bar.max = file.size || 1;
    bar.value = 0;
    bar.setAttribute("aria-label", file.name);
    stop.type = "button";
    stop.className = "btn btn-sm btn-plain";
    stop.textContent = gettext("Cancel");
    row.append(file.name, bar, stop);
    this.querySelector(".files-uploads")?.append(row);
    const base = this.dataset.uploadUrl ?? "";
    const around = base.endsWith("path=") ? base : `${base}/`;
    const request = new XMLHttpRequest();
    this.#request = request;
    return new Promise((resolve) => {
      const settle = () => {
        row.remove();
        this.#request = null;
        resolve(answerOf(request));
      };
      request.upload.addEventListener("progress", (event) => {
        bar.value = event.loaded;
      });
      for (const end of ["load", "error", "abort"]) request.addEventListener(end, settle);
      stop.addEventListener("click", () => request.abort());
      request.open("PUT", `${around}${encodeURIComponent(file.name)}&replace=${replace ? 1 : 0}`);
      request.setRequestHeader("X-CSRFToken", csrfToken());
      request.setRequestHeader("Accept", "application/json");
      request.setRequestHeader("Content-Type", "application/octet-stream");
      request.send(file);
    });
  }
}

customElements.define("job-files", JobFiles);
