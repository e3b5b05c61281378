// @ts-check
/**
 * Texts made in the browser, in the person's language.
 *
 * Django's JavaScriptCatalog is loaded before the modules, where the project serves it; without it, English.
 * `makemessages -d djangojs` finds the texts by these functions' names.
 */

const catalogue = globalThis.django ?? {};

/** The page's language as BCP 47, for Intl. */
export const language = document.documentElement.lang || "en";

/**
 * @param {string} text
 * @returns {string}
 */
export function gettext(text) {
  return catalogue.gettext?.(text) ?? text;
}

/**
 * @param {string} one
 * @param {string} many
 * @param {number} count
 * @returns {string}
 */
export function ngettext(one, many, count) {
  return catalogue.ngettext?.(one, many, count) ?? (count === 1 ? one : many);
}

/**
 * Put values into a text's `%(name)s` places.
 * @param {string} text
 * @param {Record<string, string | number>} values
 * @returns {string}
 */
export function fill(text, values) {
  return text.replace(/%\((\w+)\)s/g, (place, name) => String(values[name] ?? place));
}

const counts = new Intl.NumberFormat(language);

/**
 * A whole number as people read it: 12,345.
 * @param {number} value
 */
export function countText(value) {
  return counts.format(value);
}

const percents = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 });

/**
 * A part of a whole: 12.3%.
 * @param {number} part from 0 to 1
 */
export function percentText(part) {
  return percents.format(part);
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/**
 * A size as people read it; steps of 1024, as everywhere in the console.
 * @param {number} bytes
 * @returns {string}
 */
export function sizeText(bytes) {
  const step = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  const digits = step === 0 || value >= 100 ? 0 : 1;
  const number = new Intl.NumberFormat(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${number.format(value)}\u00a0${units[step]}`;
}
