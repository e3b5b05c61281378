// @ts-check
/**
 * Form, job file, or both: which is shown, and what of the form. The choice is remembered; on a narrow screen, where
 * both have no room, it is the form.
 */

import { gettext } from "./i18n.js";
import { recall, remember } from "./storage.js";

const VIEW = "new-view";

/**
 * What is said beside the form of a field of it (`data-goes-to`, its id) leads there; with `data-value` it has that.
 * @param {HTMLElement} host @param {HTMLTextAreaElement} file
 */
function startWays(host, file) {
  file.form?.addEventListener("click", (event) => {
    const way = event.target instanceof Element ? event.target.closest("[data-goes-to]") : null;
    const field = way instanceof HTMLElement ? document.getElementById(way.dataset.goesTo ?? "") : null;
    if (!(way instanceof HTMLElement) || !(field instanceof HTMLInputElement || field instanceof HTMLSelectElement)) return;
    event.preventDefault();
    const both = document.querySelector(`input[name="${VIEW}"][value="both"]`);
    if (!host.checkVisibility() && both instanceof HTMLElement) both.click();
    for (let around = field.closest("details"); around; around = around.parentElement?.closest("details") ?? null) around.open = true;
    field.focus();
    const { value } = way.dataset;
    if (value === undefined || field.value === value || field.disabled) return;
    field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

/** @param {HTMLElement} host @param {HTMLTextAreaElement} file */
export function startViews(host, file) {
  const columns = host.closest("[data-new-view]");
  if (columns instanceof HTMLElement) startSwitch(columns, file);
  startWays(host, file);
  startSpy(host);
  startUnfold(host);
}

/** @param {HTMLElement} columns @param {HTMLTextAreaElement} file */
function startSwitch(columns, file) {
  const choices = [...document.querySelectorAll(`input[name="${VIEW}"]`)].filter((each) => each instanceof HTMLInputElement);
  const kept = columns.dataset.asked === undefined ? recall(VIEW) : null;
  const known = choices.find((each) => each.value === kept)?.value ?? columns.dataset.newView;
  const shown = known === "both" && matchMedia("(width < 992px)").matches ? "form" : known;
  columns.dataset.newView = shown ?? "both";
  for (const choice of choices) {
    choice.checked = choice.value === shown;
    choice.addEventListener("change", () => {
      columns.dataset.newView = choice.value;
      remember(VIEW, choice.value);
    });
  }
  // Whoever has no file before them begins in the form: in the command, where a change of that was asked for.
  if (file.closest(".editor")?.checkVisibility()) return;
  const first = file.dataset.line ? ".form-command" : 'input[name="name"]';
  const field = columns.querySelector(first);
  if (field instanceof HTMLElement && file.dataset.begins !== undefined) field.focus();
}

/** The list of sections says which one is being looked at. @param {HTMLElement} host */
function startSpy(host) {
  const links = new Map([...host.querySelectorAll(".form-spy a")].map((link) => [link.getAttribute("href")?.slice(1), link]));
  const seen = new Set();
  const watch = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target.id);
      const first = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) {
        if (id === first) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-20% 0px -60% 0px" },
  );
  for (const section of host.querySelectorAll("[data-section]")) watch.observe(section);
}

/** @param {HTMLElement} host */
function startUnfold(host) {
  const button = host.querySelector("[data-form-unfold]");
  button?.addEventListener("click", () => {
    const isOpen = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(isOpen));
    button.textContent = isOpen ? gettext("Fewer settings") : gettext("All settings");
    for (const group of host.querySelectorAll("details[data-group]")) group.toggleAttribute("open", isOpen);
  });
}
