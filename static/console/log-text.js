// @ts-check
/**
 * From the bytes of a log to lines of text: UTF-8 (what is not becomes U+FFFD), carriage returns as a terminal
 * shows them, and no control sequence but colours.
 *
 * @typedef {object} Line
 * @property {number} start the byte it begins at
 * @property {number} end the byte after it, its newline included
 * @property {string} text without the newline, control sequences and all
 * @property {boolean} open whether more of it may come: no newline seen yet
 */

/** A line is broken here, so that no single one fills the memory; characters. */
export const LONGEST_LINE = 256 * 1024;

const NEWLINE = 0x0a;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * How many of the bytes end with a whole character: what is cut off may be the beginning of one.
 * @param {Uint8Array} bytes
 * @returns {number}
 */
export function wholeCharacters(bytes) {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue; // a continuation byte: look further back for its lead
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return needs > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/**
 * The first byte that begins a character: those before it are the end of one.
 * @param {Uint8Array} bytes
 * @returns {number}
 */
export function characterStart(bytes) {
  let at = 0;
  while (at < Math.min(4, bytes.length) && ((bytes[at] ?? 0) & 0xc0) === 0x80) at += 1;
  return at;
}

/**
 * Bytes split after each newline; the last part may have none.
 * @param {Uint8Array} bytes
 * @param {number} start the byte of the log they begin at
 * @returns {Line[]}
 */
export function splitLines(bytes, start) {
  const lines = [];
  let from = 0;
  while (from < bytes.length) {
    const newline = bytes.indexOf(NEWLINE, from);
    const open = newline === -1;
    const to = open ? bytes.length : newline;
    const next = open ? to : to + 1;
    lines.push({ start: start + from, end: start + next, text: decoder.decode(bytes.subarray(from, to)), open });
    from = next;
  }
  return lines;
}

/**
 * Bytes that begin anywhere, without the line they begin in the middle of.
 * @param {Uint8Array} bytes
 * @returns {number} where its first whole line begins; 0 when it has no newline at all
 */
export function firstLineStart(bytes) {
  return bytes.indexOf(NEWLINE) + 1;
}

/** Of the colours set by what was overwritten, as many as can matter. */
const KEPT_COLOURS = 8;
const SGR = /\x1b\[[0-9;]*m/g;

/**
 * A line as carriage returns leave it: what was written last. Colours set by what was overwritten stay set.
 * A return at the end stays, because what comes next will overwrite.
 * @param {string} text
 * @returns {string}
 */
export function overwritten(text) {
  if (!text.includes("\r")) return text;
  const end = /\r*$/.exec(text)?.index ?? text.length;
  const from = text.lastIndexOf("\r", end - 1) + 1;
  const colours = text.slice(0, from).match(SGR)?.slice(-KEPT_COLOURS).join("") ?? "";
  return colours + text.slice(from, end) + (end < text.length ? "\r" : "");
}

/** What steers a terminal, in the order to look for it. */
const STEERING = new RegExp(
  [
    /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/, // OSC: titles, links, clipboards
    /\x1b[PX^_][^\x1b]*\x1b\\/, // DCS, SOS, PM, APC: device strings
    /\x1b\[[0-?]*[ -/]*(?:[@-~]|$)/, // CSI, the colours among them; or its beginning, where the line ends in it
    /\x1b\]/, // an OSC without an end: what follows stays readable
    /\x1b[ -/]*[0-Z\\^-~]?/, // shorter escapes
    /[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]/, // other controls but tab, the 8-bit ones too
  ]
    .map((each) => each.source)
    .join("|"),
  "g",
);
const COLOUR = /^\x1b\[[0-9;]*m$/;

/**
 * Only text, tabs and colours (SGR): no cursor movement, no titles, no links, no device strings.
 * @param {string} text
 * @returns {string}
 */
export function onlyColours(text) {
  return text.replace(STEERING, (sequence) => (COLOUR.test(sequence) ? sequence : ""));
}
