// @ts-check
/** Lines and columns as the server counts them, and places as CodeMirror does. */

/** @typedef {{ lines: number, line: (number: number) => { from: number, text: string } }} Doc */

/**
 * A place in the text: UTF-16 units from the beginning.
 * @param {Doc} doc
 * @param {number} line from 1
 * @param {number} column from 1, in code points
 * @returns {number}
 */
export function positionIn(doc, line, column) {
  const found = doc.line(Math.min(Math.max(1, line), doc.lines));
  const before = [...found.text].slice(0, Math.max(0, column - 1)).join("");
  return found.from + before.length;
}

/**
 * From a place to the end of what stands there: the word, the string, or the line.
 * @param {Doc} doc
 * @param {number} line from 1
 * @param {number} column from 1, in code points
 */
export function spanAt(doc, line, column) {
  const from = positionIn(doc, line, column);
  const found = doc.line(Math.min(Math.max(1, line), doc.lines));
  const rest = found.text.slice(from - found.from);
  const length = /^(?:"(?:[^"\\]|\\.)*"|[\w.+-]+|\S)/.exec(rest)?.[0].length ?? rest.length;
  return { from, to: from + length };
}

/**
 * The one change that makes `after` of `before`: what stands between where both begin and end alike.
 * @param {string} before
 * @param {string} after
 */
export function changeTo(before, after) {
  if (before === after) return null;
  const shorter = Math.min(before.length, after.length);
  let from = 0;
  while (from < shorter && before[from] === after[from]) from += 1;
  let same = 0;
  while (same < shorter - from && before.at(-1 - same) === after.at(-1 - same)) same += 1;
  return { from, to: before.length - same, insert: after.slice(from, after.length - same) };
}
