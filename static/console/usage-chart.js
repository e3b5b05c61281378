// @ts-check
/** `<div class="usage-chart" data-usage='{"A100": [[seconds, GPUs], …]}'>` becomes a chart over time. */

import { gettext } from "./i18n.js";
import { axisTexts, momentText, timeZone } from "./times.js";
import uPlot from "../vendor/uplot-1.6.32/uplot.js";

const COLOURS = ["--running", "--accent", "--queued", "--succeeded", "--failed", "--pending"];
const DASHES = [[], [6, 3]];
const HEIGHT_PX = 120;
const NARROWEST_PX = 200;
const HOUR_S = 3_600;
const DAY_S = 86_400;
const MINUTE_S = 60;

/**
 * A colour of the page as a canvas understands it.
 * @param {string} name
 */
export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/**
 * One row of times for all types; an hour in which a type was not held is 0.
 * @param {Record<string, [number, number][]>} usage
 * @returns {number[][]}
 */
export function rows(usage) {
  const times = [...new Set(Object.values(usage).flatMap((points) => points.map(([at]) => at)))].sort((a, b) => a - b);
  const columns = Object.values(usage).map((points) => {
    const held = new Map(points);
    return times.map((at) => held.get(at) ?? 0);
  });
  return [times, ...columns];
}

/**
 * What is shown when there is one hour alone: that and the ones beside it; uPlot by itself would show years.
 * @param {number} time
 * @returns {[number, number]}
 */
export function around(time) {
  return [time - HOUR_S, time + HOUR_S];
}

/**
 * @param {uPlot} _plot
 * @param {number[]} seconds
 * @param {number} _axis
 * @param {number} _space
 * @param {number} step
 */
function times(_plot, seconds, _axis, _space, step) {
  return axisTexts(seconds.map((at) => at * 1000), step >= DAY_S, step < MINUTE_S);
}

/**
 * The clock of the person's time zone, where uPlot looks for round hours.
 * @param {number} seconds
 */
function zoned(seconds) {
  const when = new Date(seconds * 1000);
  return timeZone ? uPlot.tzDate(when, timeZone) : when;
}

/** What the legend says of the time under the pointer. @param {uPlot} _plot @param {number | null} seconds */
function pointed(_plot, seconds) {
  return seconds === null ? "–" : momentText(seconds * 1000);
}

/** @param {HTMLElement} box */
function draw(box) {
  if (box.childElementCount) return;
  const usage = JSON.parse(box.dataset.usage ?? "{}");
  const drawn = rows(usage);
  const isAlone = drawn[0]?.length === 1;
  const series = Object.keys(usage).map((label, index) => ({
    label,
    stroke: colour(COLOURS[index % COLOURS.length]),
    dash: DASHES[Math.floor(index / COLOURS.length) % DASHES.length],
    width: 1.5,
    points: { show: isAlone },
  }));
  const axis = { stroke: colour("--text-muted"), grid: { stroke: colour("--line"), width: 1 } };
  const plot = new uPlot(
    {
      width: Math.max(NARROWEST_PX, box.clientWidth),
      height: HEIGHT_PX,
      tzDate: zoned,
      scales: isAlone ? { x: { range: around(drawn[0]?.[0] ?? 0) } } : {},
      series: [{ label: gettext("Time"), value: pointed }, ...series],
      axes: [{ ...axis, values: times }, { ...axis, size: 60 }],
    },
    drawn,
    box,
  );
  new ResizeObserver(() => plot.setSize({ width: Math.max(NARROWEST_PX, box.clientWidth), height: HEIGHT_PX })).observe(box);
}

/** @param {ParentNode} root */
function drawAll(root) {
  for (const box of root.querySelectorAll(".usage-chart")) if (box instanceof HTMLElement) draw(box);
}

drawAll(document);
document.body.addEventListener("htmx:afterSettle", () => drawAll(document));
