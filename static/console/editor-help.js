// @ts-check
/**
 * Help while writing, from the dialect's JSON Schema (`data-schema-url`): keys and values that fit where the cursor is
 * (Ctrl-Space), and what a key means, under the pointer or, with F1, under the cursor.
 */

import {
  StateEffect,
  StateField,
  autocompletion,
  hoverTooltip,
  keymap,
  showTooltip,
} from "../vendor/codemirror-6.43.15/codemirror.js";
import { announce } from "./announce.js";
import { placeIn } from "./editor-place.js";
import { keysOf, schemasAt, typesOf, valuesOf } from "./editor-schema.js";
import { fill, gettext } from "./i18n.js";

/**
 * @import { Editor } from "./editor.js"
 * @import { Place } from "./editor-place.js"
 * @import { Schema } from "./editor-schema.js"
 */

/** @type {Record<string, string>} */
const TYPES = {
  string: gettext("string"),
  integer: gettext("integer"),
  number: gettext("number"),
  boolean: gettext("true or false"),
  array: gettext("list"),
  object: gettext("object"),
  null: gettext("null"),
};

/** A token that what is typed next still belongs to. */
const SAME_TOKEN = /^[\w.$/-]*$/;

/** @param {Editor} editor */
export function help(editor) {
  /** @param {{ pos: number, explicit: boolean, matchBefore: (pattern: RegExp) => unknown }} context */
  const complete = async (context) => {
    const place = placeIn(editor.text, context.pos, editor.syntax);
    if (!place || (!context.explicit && !place.quoted && !context.matchBefore(/[\w-]$|:\s$|=$/))) return null;
    const root = await editor.schema();
    if (!root) return null;
    const options = place.kind === "key" ? keyOptions(editor, place, root) : valueOptions(editor, place, root);
    return options.length ? { from: place.from, to: Math.max(context.pos, place.from), options, validFor: SAME_TOKEN } : null;
  };
  return [
    autocompletion({ override: [complete], icons: false }),
    hoverTooltip((/** @type {any} */ _view, /** @type {number} */ at) => tooltip(editor, at)),
    asked,
    keymap.of([{ key: "F1", run: () => (void explain(editor), true) }]),
  ];
}

// --- Completion --------------------------------------------------------------------------------------------------

/** @param {Editor} editor @param {Place} place @param {Schema} root */
function keyOptions(editor, place, root) {
  const schemas = schemasAt(root, place.path);
  const used = new Set(place.present.filter((name) => name !== place.name));
  const keys = keysOf(schemas, root).filter(({ name }) => !used.has(spelled(name, editor.syntax)));
  const options = keys.map(({ name, required, schemas: own }) => ({
    label: spelled(name, editor.syntax),
    type: "property",
    detail: typeText(own),
    boost: required ? 2 : 0,
    info: () => card(name, own),
    apply: (/** @type {any} */ view) => putKey(editor, view, spelled(name, editor.syntax), typesOf(own)),
  }));
  return [...options, ...(options.length ? [] : valueOptions(editor, place, root))];
}

/** Options of sbatch are written with their dashes. @param {string} name @param {string} syntax */
function spelled(name, syntax) {
  return syntax === "shell" && !name.startsWith("-") ? `--${name}` : name;
}

/** @param {Editor} editor @param {Place} place @param {Schema} root */
function valueOptions(editor, place, root) {
  const schemas = schemasAt(root, place.path);
  return valuesOf(schemas).map((value) => ({
    label: String(value),
    type: "enum",
    ...(schemas[0]?.default === value ? { detail: gettext("default") } : {}),
    apply: editor.syntax === "json" && !place.quoted ? JSON.stringify(value) : String(value),
  }));
}

/** What opens a value of a type, in JSON; the cursor goes into its middle. @type {Record<string, string>} */
const OPENED = { string: '""', array: "[]", object: "{}" };

/** @param {Editor} editor @param {any} view @param {string} name @param {string[]} types */
function putKey(editor, view, name, types) {
  const place = placeIn(editor.text, view.state.selection.main.head, editor.syntax);
  if (!place) return;
  const put = editor.syntax === "json" ? jsonKey(editor.text, place, name, types) : plainKey(editor, place, name, types);
  view.dispatch({
    changes: { from: put.from, to: put.to, insert: put.before + put.after },
    selection: { anchor: put.from + put.before.length },
    userEvent: "input.complete",
    scrollIntoView: true,
  });
}

/**
 * The key with its quotes, its colon and, where one is missing, the comma before or after it.
 * @param {string} text @param {Place} place @param {string} name @param {string[]} types
 */
function jsonKey(text, place, name, types) {
  const from = place.quoted ? place.from - 1 : place.from;
  const to = place.quoted && text[place.to] === '"' ? place.to + 1 : place.to;
  const follows = text.slice(to).trimStart();
  const precedes = text.slice(0, from).trimEnd();
  const comma = /[{,]$/.test(precedes) ? "" : ", ";
  if (follows.startsWith(":")) return { from, to, before: `${comma}"${name}"`, after: "" };
  const opened = OPENED[types[0] ?? ""] ?? "";
  const half = opened.length / 2;
  return { from, to, before: `${comma}"${name}": ${opened.slice(0, half)}`, after: opened.slice(half) + (follows.startsWith('"') ? "," : "") };
}

/** @param {Editor} editor @param {Place} place @param {string} name @param {string[]} types */
function plainKey(editor, place, name, types) {
  const { from, to } = place;
  if (editor.syntax !== "yaml") return { from, to, before: types[0] === "boolean" && editor.syntax === "shell" ? name : `${name}=`, after: "" };
  if (/^\s*:/.test(editor.text.slice(to, to + 2))) return { from, to, before: name, after: "" };
  const indent = " ".repeat(from - (editor.text.lastIndexOf("\n", from - 1) + 1));
  const opened = { array: `\n${indent}  - `, object: `\n${indent}  ` }[types[0] ?? ""] ?? " ";
  return { from, to, before: `${name}:${opened}`, after: "" };
}

// --- What a key means --------------------------------------------------------------------------------------------

/** @param {Editor} editor @param {number} at */
async function tooltip(editor, at) {
  const place = placeIn(editor.text, at, editor.syntax);
  const root = place && (await editor.schema());
  if (!place || !root || at > place.to || (place.kind === "key" && !place.name)) return null;
  const path = place.kind === "key" ? [...place.path, place.name] : place.path;
  const name = String(path.findLast((token) => typeof token === "string") ?? "");
  const schemas = schemasAt(root, path);
  if (!schemas.some((schema) => schema.description)) return null;
  return { pos: place.from, end: place.to, above: true, create: () => ({ dom: card(name, schemas) }) };
}

const showHelp = StateEffect.define();

/** The help that was asked for with a key; it goes when the cursor does. */
const asked = StateField.define({
  create: () => null,
  update(/** @type {any} */ shown, /** @type {any} */ transaction) {
    for (const effect of transaction.effects) if (effect.is(showHelp)) return effect.value;
    return transaction.docChanged || transaction.selection ? null : shown;
  },
  provide: (/** @type {any} */ field) => showTooltip.from(field),
});

/** Show and say what the key at the cursor means. @param {Editor} editor */
async function explain(editor) {
  const found = await tooltip(editor, editor.view.state.selection.main.head);
  editor.view.dispatch({ effects: showHelp.of(found) });
  announce(found?.create().dom.textContent ?? gettext("No help available here."));
}

/** @param {string} name @param {Schema[]} schemas */
function card(name, schemas) {
  const dom = document.createElement("div");
  dom.className = "cm-help";
  const described = schemas.find((schema) => schema.description);
  const head = child(dom, "div", "");
  child(head, "strong", name);
  child(head, "span", ` ${typeText(schemas)}`);
  child(dom, "p", described?.description ?? "");
  const facts = factsOf(schemas);
  if (facts) child(dom, "p", facts).className = "cm-help-facts";
  return dom;
}

/** @param {HTMLElement} parent @param {string} tag @param {string} text */
function child(parent, tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  parent.append(element);
  return element;
}

/** @param {Schema[]} schemas */
function typeText(schemas) {
  return typesOf(schemas)
    .map((type) => TYPES[type] ?? type)
    .join(" / ");
}

/** Default, bounds and whose key it is. @param {Schema[]} schemas */
function factsOf(schemas) {
  const all = Object.assign({}, ...schemas.toReversed());
  const { minimum, maximum, maxLength } = all;
  return [
    ["string", "number", "boolean"].includes(typeof all.default) && all.default !== ""
      ? fill(gettext("default %(value)s"), { value: String(all.default) })
      : "",
    minimum === undefined ? "" : `≥ ${minimum}`,
    maximum === undefined ? "" : `≤ ${maximum}`,
    maxLength === undefined ? "" : fill(gettext("at most %(count)s characters"), { count: maxLength }),
    all.$comment ?? "",
  ]
    .filter(Boolean)
    .join(" · ");
}
