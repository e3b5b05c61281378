// @ts-check
/**
 * The tab's title and icon carry a watched job's state: the element with `data-tab-state="running"` (and
 * `data-tab-title`, the words before the page's own title) says which.
 */

const pageTitle = document.title;
const colours = {
  queued: "#6b7280",
  submitting: "#6d5bd0",
  pending: "#b7791f",
  running: "#2374c6",
  succeeded: "#1f8a4c",
  failed: "#cf3a34",
  stopped: "#4b5563",
  lost: "#a63a9a",
  warning: "#b7791f",
};

/** Small enough to be told apart at 16 pixels: each state has its own outline. */
const shapes = {
  queued: '<circle cx="8" cy="8" r="5.5" fill="none" stroke="C" stroke-width="2.5" stroke-dasharray="3 2.76"/>',
  submitting: '<path d="M8 15V4M3 8l5-5 5 5" fill="none" stroke="C" stroke-width="2.5"/>',
  pending: '<path d="M3 1h10L8 8l5 7H3l5-7z" fill="C"/>',
  running: '<path d="M3 1.5v13L15 8z" fill="C"/>',
  succeeded: '<circle cx="8" cy="8" r="8" fill="C"/><path d="m4 8.5 2.5 2.5L12 5.5" fill="none" stroke="#fff" stroke-width="2.2"/>',
  failed: '<path d="M5 0h6l5 5v6l-5 5H5l-5-5V5z" fill="C"/><path d="m5 5 6 6m0-6-6 6" stroke="#fff" stroke-width="2.2"/>',
  stopped: '<rect x="1" y="1" width="14" height="14" rx="2" fill="C"/>',
  lost: '<circle cx="8" cy="8" r="8" fill="C"/><path d="M5.5 6a2.5 2.5 0 1 1 2.5 3v1" fill="none" stroke="#fff" stroke-width="2"/><circle cx="8" cy="12.5" r="1.2" fill="#fff"/>',
  warning: '<path d="M8 0l8 15H0z" fill="C"/><path d="M8 5.5V10" stroke="#fff" stroke-width="2"/><circle cx="8" cy="12.3" r="1.1" fill="#fff"/>',
};

/** @param {string} state @returns {string | null} */
function iconOf(state) {
  if (!(state in shapes)) return null;
  const known = /** @type {keyof typeof shapes} */ (state);
  const drawing = shapes[known].replaceAll("C", colours[known]);
  return `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${drawing}</svg>`)}`;
}

export function showTabState() {
  const marked = document.querySelector("[data-tab-state]");
  if (!(marked instanceof HTMLElement)) return;
  const href = iconOf(marked.dataset.tabState?.toLowerCase() ?? "");
  const link = document.querySelector('link[rel="icon"]');
  if (href && link && link.getAttribute("href") !== href) link.setAttribute("href", href);
  const title = marked.dataset.tabTitle ? `${marked.dataset.tabTitle} · ${pageTitle}` : pageTitle;
  if (document.title !== title) document.title = title;
}
