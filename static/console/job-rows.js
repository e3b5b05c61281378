// @ts-check
/**
 * Rows of the list of jobs: j and k move between them, x selects the one in focus, and the box in the head selects
 * all of them. The keys belong to hidden buttons (`data-row`), so that the list of keys names them.
 */

/** @param {string} selector @returns {HTMLElement[]} */
const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each instanceof HTMLElement);

/** @param {string} act */
function use(act) {
  const links = all("[data-rows] .row-link");
  const at = links.findIndex((link) => link.closest("tr")?.contains(document.activeElement));
  if (act === "pick") {
    const box = links[at]?.closest("tr")?.querySelector("input[name=id]");
    if (box instanceof HTMLInputElement) box.checked = !box.checked;
    return;
  }
  const next = act === "next" ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0);
  links[next]?.focus();
}

export function startJobRows() {
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element && event.target.closest("[data-row]");
    if (button instanceof HTMLElement) use(button.dataset.row ?? "");
  });
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || !("pickAll" in box.dataset)) return;
    for (const each of box.closest("form")?.querySelectorAll("input[name=id]") ?? []) {
      if (each instanceof HTMLInputElement) each.checked = box.checked;
    }
  });
}
