// @ts-check
/** The navigation's width, remembered in this browser, and the open tab in sight where not all of them have room. */

import { remember } from "./storage.js";

/** A narrow window begins with the first tabs, whichever is open. */
function showOpenTab() {
  for (const tab of document.querySelectorAll('.tabs [aria-current="page"]')) {
    const tabs = tab.closest(".tabs");
    if (!tabs) continue;
    const [inner, outer] = [tab.getBoundingClientRect(), tabs.getBoundingClientRect()];
    tabs.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  }
}

export function startNav() {
  showOpenTab();
  const button = document.getElementById("nav-collapse");
  if (!button) return;
  const root = document.documentElement;
  const show = () => button.setAttribute("aria-pressed", String(root.dataset.nav === "slim"));
  button.addEventListener("click", () => {
    if (root.dataset.nav === "slim") delete root.dataset.nav;
    else root.dataset.nav = "slim";
    remember("nav", root.dataset.nav ?? "wide");
    show();
  });
  show();
}
