// @ts-check
/** `<div class="usage-chart" data-usage='{"A100": [[seconds, GPUs], …]}'>` becomes a chart over time. */

import uPlot from "../vendor/uplot-1.6.32/uplot.js";

const COLOURS = ["--running", "--accent", "--queued", "--succeeded"];
const HEIGHT_PX = 120;
const HALF_A_DAY_S = 43_200;

/**
 * A colour of the page as a canvas understands it.
 * @param {string} name
 */
function colour(name) {
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
 * What is shown when there is one time alone; uPlot by itself would show years.
 * @param {number} time
 * @returns {[number, number]}
 */
export function around(time) {
  return [time - HALF_A_DAY_S, time + HALF_A_DAY_S];
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
    width: 1.5,
    points: { show: isAlone },
  }));
  const axis = { stroke: colour("--text-muted"), grid: { stroke: colour("--line"), width: 1 } };
  new uPlot(
    {
      width: Math.max(200, box.clientWidth),
      height: HEIGHT_PX,
      scales: isAlone ? { x: { range: around(drawn[0]?.[0] ?? 0) } } : {},
      series: [{}, ...series],
      axes: [axis, { ...axis, size: 40 }],
    },
    drawn,
    box,
  );
}

/** @param {ParentNode} root */
function drawAll(root) {
  for (const box of root.querySelectorAll(".usage-chart")) if (box instanceof HTMLElement) draw(box);
}

drawAll(document);
document.body.addEventListener("htmx:afterSettle", () => drawAll(document));
