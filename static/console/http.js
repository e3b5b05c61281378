// @ts-check
/** Requests that modules make themselves (htmx makes the others). */

/** The page's CSRF token; sign-in changes it, and sign-in loads a new page. */
export function csrfToken() {
  return document.querySelector('meta[name="csrf-token"]')?.getAttribute("content") ?? "";
}

/**
 * POST a form and read JSON.
 * @param {string} url
 * @param {Record<string, string>} fields
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 * @throws {Error} when the answer is not JSON with a 2xx or 4xx status that carries problems
 */
export async function postForm(url, fields, signal) {
  const response = await fetch(url, {
    method: "POST",
    body: new URLSearchParams(fields),
    headers: { "X-CSRFToken": csrfToken(), Accept: "application/json" },
    signal: signal ?? null,
  });
  if (!response.ok && response.status !== 400) throw new Error(`${url} answered ${response.status}`);
  return response.json();
}
