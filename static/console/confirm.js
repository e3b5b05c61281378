// @ts-check
/**
 * Asking first. `data-confirm="Stop this job?"` on a form or its button, with `data-confirm-label="Stop"`;
 * for htmx the same attributes stand beside `hx-confirm`.
 */

import { dialogById, openDialog } from "./dialogs.js";

/**
 * @param {string} question
 * @param {string} [label] what the button that goes on says
 * @returns {Promise<boolean>}
 */
export function ask(question, label) {
  const dialog = dialogById("confirm");
  const yes = document.getElementById("confirm-yes");
  const text = document.getElementById("confirm-text");
  if (!dialog || !yes || !text) return Promise.resolve(window.confirm(question));
  text.textContent = question;
  yes.dataset.label ??= yes.textContent ?? "";
  yes.textContent = label || yes.dataset.label;
  return new Promise((resolve) => {
    let answer = false;
    const agree = () => {
      answer = true;
      dialog.close();
    };
    const settle = () => {
      yes.removeEventListener("click", agree);
      resolve(answer);
    };
    yes.addEventListener("click", agree);
    dialog.addEventListener("close", settle, { once: true });
    openDialog("confirm");
  });
}

export function startConfirm() {
  const agreed = new WeakSet();
  document.addEventListener(
    "submit",
    async (event) => {
      const form = event.target;
      if (!(form instanceof HTMLFormElement)) return;
      const asker = event.submitter?.dataset.confirm ? event.submitter : form;
      if (!asker.dataset.confirm || agreed.delete(form)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      const { submitter } = event;
      if (!(await ask(asker.dataset.confirm, asker.dataset.confirmLabel))) return;
      agreed.add(form);
      if (!form.isConnected) {
        // What it stood in was drawn anew meanwhile.
        form.hidden = true;
        document.body.append(form);
      }
      form.requestSubmit(submitter);
    },
    { capture: true },
  );
  document.addEventListener("htmx:confirm", async (event) => {
    const { question, elt, issueRequest } = /** @type {CustomEvent} */ (event).detail;
    if (!question) return;
    event.preventDefault();
    if (await ask(question, elt.dataset.confirmLabel)) issueRequest(true);
  });
}
