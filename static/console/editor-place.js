// @ts-check
/**
 * Where in a job file a cursor is: which keys lead there, and whether a key or a value stands there. Texts that
 * somebody is still writing are never whole, so nothing is parsed: tokens and indents are enough.
 */

/** @typedef {(string | number)[]} Path */

/**
 * `path` leads to the object for a key, to the value for a value. What is typed there goes `from` … `to`, inside
 * quotes where there are any. `present` are the keys that the object has already.
 * @typedef {object} Place
 * @property {"key" | "value"} kind
 * @property {Path} path
 * @property {number} from
 * @property {number} to
 * @property {boolean} quoted
 * @property {string} name the whole token, as far as it is there
 * @property {readonly string[]} present
 */

/** @typedef {"json" | "yaml" | "shell" | "properties"} Syntax */

/**
 * @param {string} text
 * @param {number} at
 * @param {Syntax} syntax
 * @returns {Place | null}
 */
export function placeIn(text, at, syntax) {
  if (syntax === "json") return jsonPlace(text, at);
  if (syntax === "yaml") return yamlPlace(text, at);
  return syntax === "shell" ? directivePlace(text, at) : propertyPlace(text, at);
}

// --- JSON --------------------------------------------------------------------------------------------------------

/**
 * @typedef {object} Frame
 * @property {boolean} array
 * @property {string[]} keys
 * @property {string} key
 * @property {number} index
 * @property {"key" | "colon" | "value" | "comma"} wants
 */

const JSON_TOKEN = /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)|"(?:[^"\\\n]|\\.)*("?)|[{}[\],:]|[^\s{}[\],:"/]+|\//g;

/** @param {string} text @param {number} at @returns {Place | null} */
function jsonPlace(text, at) {
  /** @type {Frame[]} */
  const stack = [];
  /** @type {Place | null} */
  let place = null;
  let found = false;
  for (const match of text.matchAll(JSON_TOKEN)) {
    const [token, closing] = match;
    const start = match.index;
    const end = start + token.length;
    const top = stack.at(-1);
    const isComment = token.startsWith("//") || token.startsWith("/*");
    const isText = token.startsWith('"');
    if (!found && (at < start || (at === start && /^[{}[\],:/"]/.test(token)))) {
      place = gap(stack, at);
      found = true;
    } else if (!found && (isText ? at > start && (at < end || !closing) && at <= end : at <= end && !/^[{}[\],:]$/.test(token))) {
      place = isComment || !top ? null : within(stack, isText ? start + 1 : start, closing ? end - 1 : end, isText, text);
      found = true;
    }
    if (!isComment) step(stack, token);
  }
  return found ? place : gap(stack, at);
}

/** @param {Frame[]} stack @param {string} token */
function step(stack, token) {
  const top = stack.at(-1);
  if (token === "{" || token === "[") {
    stack.push({ array: token === "[", keys: [], key: "", index: 0, wants: token === "[" ? "value" : "key" });
  } else if (token === "}" || token === "]") {
    stack.pop();
    const outer = stack.at(-1);
    if (outer) outer.wants = "comma";
  } else if (!top) {
    return;
  } else if (token === ",") {
    top.index += 1;
    top.wants = top.array ? "value" : "key";
  } else if (token === ":") {
    top.wants = "value";
  } else if (!top.array && top.wants !== "value") {
    top.key = unquoted(token);
    top.keys.push(top.key);
    top.wants = "colon";
  } else {
    top.wants = "comma";
  }
}

/** @param {string} token */
function unquoted(token) {
  return token.replace(/^"/, "").replace(/"$/, "");
}

/** @param {Frame[]} stack @returns {Path} */
function pathTo(stack) {
  return stack.slice(0, -1).map((frame) => (frame.array ? frame.index : frame.key));
}

/** Between tokens. @param {Frame[]} stack @param {number} at @returns {Place | null} */
function gap(stack, at) {
  const top = stack.at(-1);
  if (!top || top.wants === "colon" || (top.wants === "comma" && top.array)) return null;
  const kind = top.array || top.wants === "value" ? "value" : "key";
  const path = kind === "key" ? pathTo(stack) : [...pathTo(stack), top.array ? top.index : top.key];
  return { kind, path, from: at, to: at, quoted: false, name: "", present: top.keys };
}

/** @param {Frame[]} stack @param {number} from @param {number} to @param {boolean} quoted @param {string} text @returns {Place | null} */
function within(stack, from, to, quoted, text) {
  const place = gap(stack, from);
  const top = stack.at(-1);
  if (!place && top?.wants !== "colon") return null;
  return place && { ...place, to, quoted, name: text.slice(from, to) };
}

// --- YAML --------------------------------------------------------------------------------------------------------

const YAML_KEY = /^("(?:[^"\\]|\\.)*"|'[^']*'|[^\s#:,[\]{}"'-][^:#]*?)\s*:(?=\s|$)/;
const BLOCK = /^[|>][+-]?\d*\s*(#.*)?$/;

/** @typedef {{ indent: number, array: boolean, key: string, index: number }} Level */

/** @param {string} text @param {number} at @returns {Place | null} */
function yamlPlace(text, at) {
  /** @type {Level[]} */
  let levels = [];
  /** @type {Map<string, string[]>} */
  let keys = new Map();
  /** @type {Place | null} */
  let place = null;
  let offset = 0;
  let block = -1;
  for (const line of text.split("\n")) {
    const column = at >= offset && at <= offset + line.length ? at - offset : -1;
    const indent = line.length - line.trimStart().length;
    const isBlank = indent === line.length;
    if (block >= 0 && (isBlank || indent > block)) {
      if (column > block) return null;
    } else if (line.startsWith("---") || line.startsWith("...")) {
      if (place) break;
      if (column >= 0) return null;
      levels = [];
      keys = new Map();
      block = -1;
    } else if (isBlank) {
      if (column >= 0) place = blankPlace(levels, column, offset, keys);
    } else if (line[indent] === "#") {
      if (column >= 0) return null;
    } else {
      block = -1;
      const read = yamlLine(line, indent, levels, keys, column);
      if (read.block) block = read.column;
      if (column >= 0) place = read.place && { ...read.place, from: read.place.from + offset, to: read.place.to + offset };
      if (column >= 0 && !place) return null;
    }
    offset += line.length + 1;
  }
  return place;
}

/** @param {Level[]} levels @returns {Path} */
function levelPath(levels) {
  return levels.map((level) => (level.array ? level.index : level.key));
}

/** @param {Map<string, string[]>} keys @param {Path} path */
function keysAt(keys, path) {
  const name = JSON.stringify(path);
  const found = keys.get(name) ?? [];
  keys.set(name, found);
  return found;
}

/** @param {Level[]} levels @param {number} column @param {number} offset @param {Map<string, string[]>} keys @returns {Place} */
function blankPlace(levels, column, offset, keys) {
  const path = levelPath(levels.filter((level) => level.indent < column));
  const at = offset + column;
  return { kind: "key", path, from: at, to: at, quoted: false, name: "", present: keysAt(keys, path) };
}

/**
 * One line that says something; `levels` are changed to where it leads. Places count from the line's beginning.
 * @param {string} line @param {number} indent @param {Level[]} levels @param {Map<string, string[]>} keys @param {number} cursor
 * @returns {{ block: boolean, column: number, place: Place | null }}
 */
function yamlLine(line, indent, levels, keys, cursor) {
  let column = indent;
  let rest = line.slice(column);
  while (/^-(\s|$)/.test(rest)) {
    while ((levels.at(-1)?.indent ?? -1) > column) levels.pop();
    const top = levels.at(-1);
    if (top?.array && top.indent === column) top.index += 1;
    else levels.push({ indent: column, array: true, key: "", index: 0 });
    const width = /^-\s*/.exec(rest)?.[0].length ?? 1;
    column += width;
    rest = rest.slice(width);
  }
  const match = YAML_KEY.exec(rest);
  const name = match?.[1] ?? rest.replace(/\s+#.*$/, "");
  while ((levels.at(-1)?.indent ?? -1) >= column) levels.pop();
  const path = levelPath(levels);
  const present = keysAt(keys, path);
  const key = { kind: /** @type {const} */ ("key"), path, from: column, to: column + name.length, quoted: /^["']/.test(name), name, present };
  if (!match) return { block: false, column, place: cursor < column ? null : key };
  const bare = name.replace(/^["']|["']$/g, "");
  present.push(bare);
  levels.push({ indent: column, array: false, key: bare, index: 0 });
  const start = column + match[0].length + (/^\s*/.exec(rest.slice(match[0].length))?.[0].length ?? 0);
  const value = line.slice(start).replace(/\s+#.*$/, "");
  const block = BLOCK.test(line.slice(start));
  if (cursor <= column + name.length) return { block, column, place: cursor < column ? null : { ...key, name: bare } };
  const from = Math.min(start, cursor);
  return { block, column, place: { ...key, kind: "value", path: [...path, bare], from, to: Math.max(from, start + value.length), name: value, quoted: false, present: [] } };
}

// --- Parameter files and #SBATCH lines ---------------------------------------------------------------------------

/** @param {string} text @param {number} at */
function lineAt(text, at) {
  const from = text.lastIndexOf("\n", at - 1) + 1;
  const end = text.indexOf("\n", at);
  return { from, line: text.slice(from, end < 0 ? text.length : end) };
}

/** `key=value`, one a line. @param {string} text @param {number} at @returns {Place | null} */
function propertyPlace(text, at) {
  const { from, line } = lineAt(text, at);
  const [, blank = "", key = "", equals] = /^(\s*)([A-Za-z_]\w*)?\s*(=)?/.exec(line) ?? [];
  if (line.trimStart().startsWith("#") || (line.trim() && !key)) return null;
  const start = from + blank.length;
  const present = [...text.matchAll(/^[ \t]*([A-Za-z_]\w*)=/gm)].map((match) => match[1] ?? "");
  if (at <= start + key.length) return { kind: "key", path: [], from: start, to: start + key.length, quoted: false, name: key, present };
  if (!equals) return null;
  const value = from + line.indexOf("=") + 1;
  return { kind: "value", path: [key], from: value, to: from + line.length, quoted: false, name: line.slice(value - from), present: [] };
}

const OPTION = /^(--?[A-Za-z][\w-]*)(?:(=|\s+)("[^"]*"|\S*))?/;

/** `#SBATCH --option=value`. @param {string} text @param {number} at @returns {Place | null} */
function directivePlace(text, at) {
  const { from, line } = lineAt(text, at);
  const sign = /^#SBATCH\s+/.exec(line);
  if (!sign || at - from < sign[0].length) return null;
  const present = [...text.matchAll(/^#SBATCH\s+(--[\w-]+)/gm)].map((match) => match[1] ?? "");
  let start = from + sign[0].length;
  let rest = line.slice(sign[0].length);
  for (;;) {
    const match = OPTION.exec(rest);
    const option = match?.[1] ?? /^-*/.exec(rest)?.[0] ?? "";
    if (at <= start + option.length) return { kind: "key", path: [], from: start, to: start + option.length, quoted: false, name: option, present };
    if (!match) return null;
    const end = start + match[0].length;
    const value = end - (match[3] ?? "").length;
    if (at <= end && at >= value) return { kind: "value", path: [option], from: value, to: end, quoted: false, name: match[3] ?? "", present: [] };
    const blank = /^\s*/.exec(rest.slice(match[0].length))?.[0].length ?? 0;
    start = end + blank;
    rest = rest.slice(match[0].length + blank);
    if (!blank) return null;
  }
}
