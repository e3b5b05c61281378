// @ts-check
/** Dialogs: what opens and closes them. The browser's own <dialog> does the rest (focus, Esc, the page behind). */

/**
 * @param {string} id
 * @returns {HTMLDialogElement | null}
 */
export function dialogById(id) {
  const found = document.getElementById(id);
  return found instanceof HTMLDialogElement ? found : null;
}

/**
 * Open a dialog, telling it first, so that it can fill itself.
 * @param {string} id
 */
export function openDialog(id) {
  const dialog = dialogById(id);
  if (!dialog || dialog.open) return;
  for (const other of document.querySelectorAll("dialog[open]")) {
    if (other instanceof HTMLDialogElement) other.close();
  }
  dialog.dispatchEvent(new CustomEvent("dialog:open"));
  dialog.showModal();
}

export function startDialogs() {
  document.addEventListener("click", (event) => {
    if (!(event.target instanceof Element)) return;
    const opener = event.target.closest("[data-opens]");
    if (opener) openDialog(opener.getAttribute("data-opens") ?? "");
    const dialog = event.target.closest("dialog");
    // A click on the dialog element itself, not on what it holds, is a click on the backdrop.
    if (dialog && (event.target === dialog || event.target.closest("[data-closes]"))) dialog.close();
  });
}
