// @ts-check
/**
 * Django admin for screen readers: landmarks, and names of what unfold, select2 and simplebar leave without one.
 * Their markup is not ours to write; axe holds the result (tests/flows/test_every_page.py).
 */

/** The text of the label of a form control, or of its column in a table of rows. @param {Element} control */
function labelOf(control) {
  const own = control.id ? document.querySelector(`label[for="${CSS.escape(control.id)}"]`) : null;
  if (own) return own.textContent?.trim() ?? "";
  const cell = control.closest("td");
  const head = cell?.closest("table")?.querySelectorAll("thead th, thead td")[cell.cellIndex];
  return head?.textContent?.trim() ?? "";
}

/** @param {Element} element @param {string} text */
function name(element, text) {
  if (text) element.setAttribute("aria-label", text);
}

function describe() {
  document.getElementById("main")?.setAttribute("role", "main");
  for (const wrapper of document.querySelectorAll(".simplebar-content-wrapper")) {
    wrapper.removeAttribute("role"); // one of many regions of the same name is no landmark
    wrapper.removeAttribute("aria-label");
  }
  for (const empty of document.querySelectorAll("th")) {
    if (!empty.textContent?.trim() && !empty.childElementCount) empty.setAttribute("role", "presentation");
  }
  for (const tip of document.querySelectorAll(".help-tooltip[aria-label]")) tip.setAttribute("role", "img");
  for (const select of document.querySelectorAll("select")) {
    const text = labelOf(select);
    if (!select.labels?.length) name(select, text);
    const shown = select.nextElementSibling;
    if (!shown?.classList.contains("select2")) continue;
    for (const part of shown.querySelectorAll("[role=combobox], [role=searchbox], [role=textbox]")) {
      part.removeAttribute("aria-labelledby");
      name(part, text);
    }
  }
}

// select2 and Django's filters draw themselves when they like.
let waits = false;
new MutationObserver(() => {
  if (waits) return;
  waits = true;
  requestAnimationFrame(() => {
    waits = false;
    describe();
  });
}).observe(document.documentElement, { childList: true, subtree: true });
