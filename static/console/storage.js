// @ts-check
/** What this browser remembers: small strings, and no harm done where storage is forbidden. */

/**
 * @param {string} key
 * @returns {string | null}
 */
export function recall(key) {
  try {
    return localStorage.getItem(`console.${key}`);
  } catch {
    return null;
  }
}

/**
 * @param {string} key
 * @param {string} value
 */
export function remember(key, value) {
  try {
    localStorage.setItem(`console.${key}`, value);
  } catch {
    // The choice then lasts as long as the page.
  }
}
