// @ts-check
/**
 * Times people can read: `<time datetime data-relative>` says how long ago, `<time datetime data-elapsed>` how
 * long since (or, with data-elapsed="…", how long from then to that). The exact time is in the title, in the
 * person's time zone.
 */

import { language } from "./i18n.js";

/** The person's time zone; where it is not said, the browser's. */
export const timeZone = document.documentElement.dataset.timeZone;

/** @param {Intl.DateTimeFormatOptions} options */
function dateFormat(options) {
  try {
    return new Intl.DateTimeFormat(language, { ...options, ...(timeZone ? { timeZone } : {}) });
  } catch {
    return new Intl.DateTimeFormat(language, options); // a zone that this browser does not know
  }
}

const exact = dateFormat({ dateStyle: "full", timeStyle: "long" });
const day = dateFormat({ dateStyle: "medium" });
const clock = dateFormat({ timeStyle: "medium" });
const precise = dateFormat({ hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 1, hourCycle: "h23" });
const moment = dateFormat({ dateStyle: "medium", timeStyle: "short" });
const dayOfYear = dateFormat({ month: "short", day: "numeric" });
const minutes = dateFormat({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const seconds = dateFormat({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const steps = [["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];
const WEEK_S = 7 * 86_400;
const NOW_S = 5;

/**
 * "5 minutes ago", "yesterday"; after a week the date.
 * @param {Date} when
 * @param {number} now
 * @returns {string}
 */
export function relativeText(when, now) {
  const seconds = (when.getTime() - now) / 1000;
  if (Math.abs(seconds) < NOW_S) return relative.format(0, "second");
  if (Math.abs(seconds) >= WEEK_S) return day.format(when);
  for (const [unit, size] of steps) {
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit);
  }
  return relative.format(0, "second");
}

const parts = ["day", "hour", "minute", "second"].map(
  (unit) => new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "narrow" }),
);

/**
 * "3m 12s": the two largest units.
 * @param {number} milliseconds
 * @returns {string}
 */
export function elapsedText(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const values = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60, seconds % 60];
  const found = values.findIndex((value) => value > 0);
  const first = found === -1 ? values.length - 1 : found;
  return values
    .slice(first, first + 2)
    .map((value, at) => parts[first + at]?.format(value))
    .join(" ");
}

/** A day and its time. @param {number} when */
export function momentText(when) {
  return moment.format(when);
}

/**
 * Along an axis: days, or times of the clock, with the day below the first of each.
 * @param {number[]} moments
 * @param {boolean} areDays
 * @param {boolean} [haveSeconds] the moments are less than a minute apart
 * @returns {string[]}
 */
export function axisTexts(moments, areDays, haveSeconds = false) {
  const format = haveSeconds ? seconds : minutes;
  let last = "";
  return moments.map((when) => {
    const date = dayOfYear.format(when);
    if (areDays) return date;
    const text = date === last ? format.format(when) : `${format.format(when)}\n${date}`;
    last = date;
    return text;
  });
}

/** The clock time to a tenth of a second, of a line of a log. @param {number} when */
export function preciseText(when) {
  return precise.format(when);
}

/** All of a time, with its zone. @param {number} when */
export function exactText(when) {
  return exact.format(when);
}

/** "+1:02:03.4": how long after something. @param {number} milliseconds */
export function sinceText(milliseconds) {
  const tenths = Math.max(0, Math.floor(milliseconds / 100));
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const [hours, rest] = [Math.floor(tenths / 36_000), tenths % 36_000];
  return `+${hours}:${two(Math.floor(rest / 600))}:${two(Math.floor((rest % 600) / 10))}.${rest % 10}`;
}

/** The clock time, as in "as of 12:03:05". @param {number} when */
export function clockText(when) {
  return clock.format(when);
}

/** @param {HTMLTimeElement} element @param {number} now */
function show(element, now) {
  const when = new Date(element.dateTime);
  if (Number.isNaN(when.getTime())) return;
  if (!element.title) element.title = exact.format(when);
  const { elapsed } = element.dataset;
  const until = elapsed ? Date.parse(elapsed) : now;
  const text = elapsed === undefined ? relativeText(when, now) : elapsedText(until - when.getTime());
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Show every time beneath an element as of now.
 * @param {ParentNode} root
 */
export function showTimes(root) {
  const now = Date.now();
  for (const element of root.querySelectorAll("time[data-relative], time[data-elapsed]")) {
    if (element instanceof HTMLTimeElement) show(element, now);
  }
}

export function startTimes() {
  setInterval(() => {
    if (!document.hidden) showTimes(document);
  }, 1000);
  document.addEventListener("visibilitychange", () => showTimes(document));
}
