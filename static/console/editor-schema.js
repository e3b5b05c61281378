// @ts-check
/** The dialects' JSON Schemas: fetched when they are first needed, and what they say about a place. */

/** @import { Path } from "./editor-place.js" */

/**
 * As much of JSON Schema 2020-12 as describes keys.
 * @typedef {object} Schema
 * @property {string} [description]
 * @property {string} [$comment] whose key it is
 * @property {string} [$ref]
 * @property {string | string[]} [type]
 * @property {Record<string, Schema>} [properties]
 * @property {Record<string, Schema>} [patternProperties]
 * @property {string[]} [required]
 * @property {Schema | boolean} [additionalProperties]
 * @property {Schema | boolean} [items]
 * @property {Schema[]} [anyOf]
 * @property {Schema[]} [oneOf]
 * @property {Schema[]} [allOf]
 * @property {unknown[]} [enum]
 * @property {unknown[]} [examples]
 * @property {unknown} [const]
 * @property {unknown} [default]
 * @property {number} [minimum]
 * @property {number} [maximum]
 * @property {number} [maxLength]
 */

/** @type {Map<string, Promise<Schema | null>>} */
const fetched = new Map();

/**
 * @param {string} url
 * @returns {Promise<Schema | null>} null where there is none
 */
export function schemaFrom(url) {
  let asked = fetched.get(url);
  if (!asked) {
    asked = fetch(url, { headers: { Accept: "application/schema+json" } }).then(
      (response) => (response.ok ? response.json() : null),
      () => {
        fetched.delete(url); // the next cursor may find the server again
        return null;
      },
    );
    fetched.set(url, asked);
  }
  return asked;
}

const DEEPEST = 8;

/**
 * A schema, and those that it stands for or consists of.
 * @param {Schema | boolean | undefined} schema
 * @param {Schema} root
 * @returns {Schema[]}
 */
function parts(schema, root, depth = 0) {
  if (!schema || typeof schema === "boolean" || depth > DEEPEST) return [];
  const inner = [...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const named = schema.$ref?.startsWith("#/") ? [pointed(root, schema.$ref)] : [];
  return [schema, ...[...named, ...inner].flatMap((each) => parts(each, root, depth + 1))];
}

/** @param {Schema} root @param {string} reference @returns {Schema | undefined} */
function pointed(root, reference) {
  /** @type {any} */
  let at = root;
  for (const token of reference.slice(2).split("/")) at = at?.[token.replace(/~1/g, "/").replace(/~0/g, "~")];
  return at;
}

/**
 * What may stand where `path` leads, all alternatives.
 * @param {Schema} root
 * @param {Path} path
 * @returns {Schema[]}
 */
export function schemasAt(root, path) {
  let found = parts(root, root);
  for (const token of path) found = found.flatMap((schema) => below(schema, token)).flatMap((schema) => parts(schema, root));
  return found;
}

/** @param {Schema} schema @param {string | number} token @returns {(Schema | boolean | undefined)[]} */
function below(schema, token) {
  if (typeof token === "number") return [schema.items];
  const own = schema.properties?.[token] ?? schema.properties?.[token.replace(/^-+/, "")];
  if (own) return [own];
  const patterns = Object.entries(schema.patternProperties ?? {}).filter(([pattern]) => new RegExp(pattern, "u").test(token));
  return patterns.length ? patterns.map(([, each]) => each) : [schema.additionalProperties];
}

/**
 * The keys of an object that any of `schemas` describes; those that must be there first.
 * @param {Schema[]} schemas
 * @param {Schema} root
 * @returns {{ name: string, required: boolean, schemas: Schema[] }[]}
 */
export function keysOf(schemas, root) {
  const required = new Set(schemas.flatMap((schema) => schema.required ?? []));
  const names = new Set(schemas.flatMap((schema) => Object.keys(schema.properties ?? {})));
  return [...names].map((name) => ({
    name,
    required: required.has(name),
    schemas: schemas.flatMap((schema) => parts(schema.properties?.[name], root)),
  }));
}

/** The values that are named for a place. @param {Schema[]} schemas @returns {unknown[]} */
export function valuesOf(schemas) {
  const named = schemas.flatMap((schema) => [...(schema.enum ?? []), ...(schema.const === undefined ? [] : [schema.const])]);
  const shown = schemas.flatMap((schema) => [...(schema.examples ?? []), ...(schema.default === undefined ? [] : [schema.default])]);
  const flags = typesOf(schemas).includes("boolean") ? [true, false] : [];
  const scalars = [...named, ...flags, ...shown].filter((value) => ["string", "number", "boolean"].includes(typeof value) && value !== "");
  return [...new Set(scalars)];
}

/** @param {Schema[]} schemas @returns {string[]} */
export function typesOf(schemas) {
  return [...new Set(schemas.flatMap((schema) => schema.type ?? []))];
}
