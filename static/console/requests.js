// @ts-check
/**
 * What holds for every request a page makes: the CSRF token, a sign of progress, errors told where people look,
 * and a session that has ended.
 */

import { toast } from "./announce.js";
import { csrfToken } from "./http.js";
import { gettext } from "./i18n.js";

const SLOW_MS = 400;

/** How many requests that somebody waits for are under way; the bar shows once one is slow. */
class Progress {
  #running = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #bar = document.getElementById("page-progress");

  begin() {
    this.#running += 1;
    this.#timer ??= setTimeout(() => this.#bar?.removeAttribute("hidden"), SLOW_MS);
  }

  end() {
    this.#running = Math.max(0, this.#running - 1);
    if (this.#running > 0) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#bar?.setAttribute("hidden", "");
  }
}

/** Live fragments refresh themselves; nobody waits for them, and live.js says when they are late. @param {Event} event */
function isLive(event) {
  const { elt } = /** @type {CustomEvent} */ (event).detail;
  return elt instanceof Element && elt.hasAttribute("data-live");
}

/**
 * Whether the answer is the sign-in page instead of what was asked for.
 * @param {XMLHttpRequest | undefined} xhr
 */
export function landedOnSignIn(xhr) {
  const login = document.body.dataset.loginUrl;
  if (!login || !xhr?.responseURL) return false;
  const here = new URL(login, location.href);
  return new URL(xhr.responseURL).pathname === here.pathname && location.pathname !== here.pathname;
}

function sayHowItFailed(/** @type {XMLHttpRequest | undefined} */ xhr) {
  const status = xhr?.status ?? 0;
  if (status === 403) toast(gettext("Permission denied."), { level: "error" });
  else if (status === 404) toast(gettext("Not found; it may have been deleted."), { level: "error" });
  else if (status === 429) toast(gettext("Too many requests. Wait a moment and try again."), { level: "error" });
  else toast(gettext("Console error. Nothing was changed; try again."), { level: "error" });
}

function watchHtmx() {
  const progress = new Progress();
  const body = document.body;
  body.addEventListener("htmx:configRequest", (event) => {
    const { verb, headers } = /** @type {CustomEvent} */ (event).detail;
    if (verb !== "get") headers["X-CSRFToken"] = csrfToken();
  });
  body.addEventListener("htmx:beforeRequest", (event) => {
    if (!isLive(event)) progress.begin();
  });
  body.addEventListener("htmx:afterRequest", (event) => {
    if (!isLive(event)) progress.end();
  });
  body.addEventListener("htmx:beforeSwap", (event) => {
    const { detail } = /** @type {CustomEvent} */ (event);
    if (!landedOnSignIn(detail.xhr)) return;
    detail.shouldSwap = false;
    const link = { url: `${body.dataset.loginUrl}?next=${encodeURIComponent(location.pathname + location.search)}`, label: gettext("Sign in") };
    toast(gettext("Signed out."), { level: "error", link });
  });
  body.addEventListener("htmx:responseError", (event) => {
    if (!isLive(event)) sayHowItFailed(/** @type {CustomEvent} */ (event).detail.xhr);
  });
  body.addEventListener("htmx:sendError", (event) => {
    if (!isLive(event)) toast(gettext("Can't reach the console. Your input is still here."), { level: "error" });
  });
}

/** A form that was sent shows so, and is not sent twice by a double click. */
function watchForms() {
  const progress = new Progress();
  document.addEventListener("submit", (event) => {
    const form = event.target;
    // htmx prevents the browser's own submit and reports its own progress.
    if (!(form instanceof HTMLFormElement) || event.defaultPrevented || form.method === "dialog" || form.target) return;
    if (form.getAttributeNames().some((name) => name.startsWith("hx-"))) return;
    event.submitter?.setAttribute("aria-busy", "true");
    progress.begin();
  });
  // Back again through the browser's history: the page is as it was left.
  window.addEventListener("pageshow", () => {
    progress.end();
    for (const button of document.querySelectorAll('[type="submit"][aria-busy], button[aria-busy]')) button.removeAttribute("aria-busy");
  });
}

export function startRequests() {
  watchHtmx();
  watchForms();
}
