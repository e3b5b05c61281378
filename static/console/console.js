// @ts-check
/**
 * Where every page's script begins: what is always there is started, what only some pages have (the editor, the log)
 * is loaded when an element asks for it, also in fragments that htmx brings later.
 */

import { startConfirm } from "./confirm.js";
import { startCopy } from "./copy.js";
import { startDialogs } from "./dialogs.js";
import { startJobRows } from "./job-rows.js";
import { startKeys } from "./keys.js";
import { live } from "./live.js";
import { startNav } from "./nav.js";
import { startPalette } from "./palette.js";
import { startRequests } from "./requests.js";
import { showTabState } from "./tabstate.js";
import { startTheme } from "./theme.js";
import { showTimes, startTimes } from "./times.js";

/**
 * Bring what has just come into the page to life.
 * @param {Element} root
 */
function enliven(root) {
  showTimes(root.parentElement ?? root);
  showTabState();
  if (root.matches("log-view") || root.querySelector("log-view")) void import("./logview.js");
  if (root.matches("merged-log") || root.querySelector("merged-log")) void import("./merged-log.js");
  if (root.matches("[data-editor]") || root.querySelector("[data-editor]")) {
    void import("./editor.js").then(({ mountEditors }) => mountEditors());
  }
  if (root.querySelector("[data-form-of]")) void import("./form.js").then(({ startForms }) => startForms(root));
  if (root.querySelector("code-upload")) void import("./code-upload.js");
  if (root.querySelector("[data-autosave]")) void import("./autosave.js").then(({ startAutosave }) => startAutosave(root));
}

startTheme();
startNav();
startDialogs();
startConfirm();
startCopy();
startTimes();
startKeys();
startJobRows();
startPalette();
startRequests();
enliven(document.body);
live.start();
document.body.addEventListener("htmx:load", (event) => {
  if (event.target instanceof Element && event.target !== document.body) enliven(event.target);
});
