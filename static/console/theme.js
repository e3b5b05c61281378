// @ts-check
/** The theme menu, and following the system while the choice is "auto". */

import { csrfToken } from "./http.js";
import { remember } from "./storage.js";

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

function apply() {
  const chosen = root.dataset.theme;
  root.dataset.bsTheme = chosen === "light" || chosen === "dark" ? chosen : system.matches ? "dark" : "light";
  for (const button of document.querySelectorAll("[data-theme-value]")) {
    button.setAttribute("aria-checked", String(button.getAttribute("data-theme-value") === chosen));
  }
}

/**
 * Keep the choice in this browser, and in the account so that the next browser starts with it.
 * @param {HTMLElement} button
 */
function choose(button) {
  const value = button.dataset.themeValue ?? "auto";
  root.dataset.theme = value;
  remember("theme", value);
  apply();
  const url = button.closest("[data-theme-url]")?.getAttribute("data-theme-url");
  if (!url) return;
  const body = new URLSearchParams({ theme: value });
  // The page already looks as asked; an account that did not learn of it is no reason to disturb anybody.
  fetch(url, { method: "POST", body, headers: { "X-CSRFToken": csrfToken() } }).catch(() => undefined);
}

export function startTheme() {
  system.addEventListener("change", apply);
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-theme-value]") : null;
    if (button instanceof HTMLElement) choose(button);
  });
  apply();
}
