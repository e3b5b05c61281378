// @ts-check
/**
 * `<div data-training-curves='[{"label": "loss", "points": [[step, value], …]}]' data-box="ID">` is drawn into the
 * element of that id, which stays when the data is fetched anew: what is zoomed stays zoomed.
 */

import { language } from "./i18n.js";
import { colour } from "./usage-chart.js";
import uPlot from "../vendor/uplot-1.6.32/uplot.js";

/** @typedef {{ label: string, points: [number, number][] }} Curve */
/** @typedef {{ plot: uPlot, data: string, labels: string, isLog: boolean }} Drawn */

const COLOURS = ["--accent", "--queued", "--succeeded", "--failed", "--running", "--text-muted"];
const DASHES = [[], [6, 3]];
const HEIGHT_PX = 220;
const NARROWEST_PX = 200;
const LOG = 3;
const DIGITS = 6;
const [SMALLEST_PLAIN, LARGEST_PLAIN] = [0.0001, 1_000_000];
const plain = new Intl.NumberFormat(language, { maximumSignificantDigits: DIGITS });

/** @type {WeakMap<Element, Drawn>} */
const drawnBoxes = new WeakMap();

/**
 * One row of steps for all curves; where a curve has no value it is null. A logarithmic scale has no value below 0.
 * @param {Curve[]} curves
 * @param {boolean} isLog
 * @returns {(number | null)[][]}
 */
export function columns(curves, isLog) {
  const steps = [...new Set(curves.flatMap(({ points }) => points.map(([step]) => step)))].sort((a, b) => a - b);
  const values = curves.map(({ points }) => {
    const held = new Map(points);
    return steps.map((step) => {
      const value = held.get(step);
      return value === undefined || (isLog && value <= 0) ? null : value;
    });
  });
  return [steps, ...values];
}

/** @param {Element} place where the data is */
function draw(place) {
  const box = document.getElementById(place.getAttribute("data-box") ?? "");
  const target = box?.querySelector(".training-plot");
  if (!box || !(target instanceof HTMLElement)) return;
  const isLog = box.querySelector("input")?.checked ?? false;
  const data = place.getAttribute("data-training-curves") ?? "[]";
  /** @type {Curve[]} */
  const curves = JSON.parse(data);
  const labels = JSON.stringify(curves.map(({ label }) => label));
  const before = drawnBoxes.get(box);
  if (before?.data === data && before.isLog === isLog) return;
  if (before && before.labels === labels && before.isLog === isLog) {
    const { min, max } = before.plot.scales.x ?? {};
    const steps = before.plot.data[0];
    const isZoomed = min !== steps[0] || max !== steps[steps.length - 1];
    // eslint-disable-next-line no-extra-parens -- a cast
    before.plot.setData(/** @type {any} */ (columns(curves, isLog)), !isZoomed);
    if (isZoomed) before.plot.redraw();
    before.data = data;
    return;
  }
  before?.plot.destroy();
  const plot = makePlot(target, curves, isLog, place.getAttribute("data-axis") || "#");
  drawnBoxes.set(box, { plot, data, labels, isLog });
  if (before) return;
  new ResizeObserver(() => drawnBoxes.get(box)?.plot.setSize(sizeOf(target))).observe(target);
  box.addEventListener("change", () => {
    const current = document.querySelector(`[data-box="${box.id}"]`);
    if (current) draw(current);
  });
}

/** @param {HTMLElement} target */
function sizeOf(target) {
  return { width: Math.max(NARROWEST_PX, target.clientWidth), height: HEIGHT_PX };
}

/**
 * @param {HTMLElement} target
 * @param {Curve[]} curves
 * @param {boolean} isLog
 * @param {string} axisName what the steps count
 */
function makePlot(target, curves, isLog, axisName) {
  const axis = { stroke: colour("--text-muted"), grid: { stroke: colour("--line"), width: 1 } };
  const series = curves.map(({ label, points }, index) => ({
    label,
    stroke: colour(COLOURS[index % COLOURS.length] ?? ""),
    dash: DASHES[Math.floor(index / COLOURS.length) % DASHES.length],
    width: 1.5,
    spanGaps: true,
    points: { show: points.length === 1 },
    value: (_plot, value) => valueText(value) || "–",
  }));
  return new uPlot(
    {
      ...sizeOf(target),
      scales: { x: { time: false }, y: isLog ? { distr: LOG } : {} },
      series: [{ label: axisName }, ...series],
      axes: [axis, { ...axis, size: 72, values: (_plot, values) => values.map(valueText) }],
    },
    // eslint-disable-next-line no-extra-parens -- a cast
    /** @type {any} */ (columns(curves, isLog)),
    target,
  );
}

/**
 * A value in six digits. uPlot itself shows three after the point, which leaves nothing of a learning rate.
 * @param {number | null} value null where there is none, or no room for it on a logarithmic axis
 * @returns {string}
 */
export function valueText(value) {
  if (value === null) return "";
  const size = Math.abs(value);
  if (size === 0 || (size >= SMALLEST_PLAIN && size < LARGEST_PLAIN)) return plain.format(value);
  return Number(value.toPrecision(DIGITS)).toExponential().replace("+", "");
}

/** @param {ParentNode} root */
function drawAll(root) {
  for (const place of root.querySelectorAll("[data-training-curves]")) draw(place);
}

drawAll(document);
document.body.addEventListener("htmx:afterSettle", () => drawAll(document));
document.body.addEventListener("htmx:beforeRequest", (event) => {
  // A tab in the background costs nothing.
  if (document.hidden && event.target instanceof Element && event.target.id === "training-metrics") event.preventDefault();
});
