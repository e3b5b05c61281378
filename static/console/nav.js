// @ts-check
/** The navigation's width, remembered in this browser. */

import { remember } from "./storage.js";

export function startNav() {
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
