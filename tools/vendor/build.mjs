/**
 * Writes static/vendor/<name>-<version>/ from the packages that package-lock.json pins.
 *
 * Every file is the package's own, except: source map comments are cut (their maps are not
 * shipped, and a static files manifest refuses a reference to a missing file), CodeMirror is
 * bundled, uPlot's module is minified, and the icon sprite holds only the icons that icons.txt names.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const vendor = join(here, "..", "..", "static", "vendor");
const modules = join(here, "node_modules");
const target = ["chrome111", "firefox128", "safari16.4"];

/** @param {string} name */
async function manifestOf(name) {
  return JSON.parse(await readFile(join(modules, name, "package.json"), "utf8"));
}

/** @param {string} name */
async function licenceOf(name) {
  const files = await readdir(join(modules, name));
  const found = files.find((file) => /^licen[cs]e(\.md|\.txt)?$/i.test(file));
  if (!found) throw new Error(`${name} ships no licence file: keep one under licences/`);
  return readFile(join(modules, name, found), "utf8");
}

/** Cut trailing source map comments. @param {string} text */
function withoutSourceMap(text) {
  return `${text.replace(/^[ \t]*(\/\/|\/\*)[#@] sourceMappingURL=.*$/gm, "").trimEnd()}\n`;
}

/** A fresh folder for one package; older versions of it go. @param {string} name @param {string} version */
async function folder(name, version) {
  for (const entry of await readdir(vendor)) {
    if (entry.replace(/-\d[^-]*$/, "") === name) await rm(join(vendor, entry), { recursive: true });
  }
  const path = join(vendor, `${name}-${version}`);
  await mkdir(path);
  return path;
}

/** Copy files of a package as they are. @param {string} name @param {string} as @param {Record<string, string>} files */
async function copy(name, as, files, licence = licenceOf(name)) {
  const { version } = await manifestOf(name);
  const path = await folder(as, version);
  for (const [from, to] of Object.entries(files)) {
    const text = await readFile(join(modules, name, from), "utf8");
    await writeFile(join(path, to), withoutSourceMap(text));
  }
  await writeFile(join(path, "LICENSE"), await licence);
  return path;
}

/** Shrink one copied script in place. @param {string} path @param {string} file */
async function minify(path, file) {
  const source = await readFile(join(path, file), "utf8");
  const { code } = await esbuild.transform(source, { minify: true, charset: "utf8", legalComments: "inline", target });
  await writeFile(join(path, file), code);
}

/** The packages whose code ended up in a bundle. @param {esbuild.Metafile} metafile */
function packagesIn(metafile) {
  const names = Object.keys(metafile.inputs)
    .map((input) => input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1])
    .filter((name) => name !== undefined);
  return [...new Set(names)].sort();
}

/** Licence texts of several packages, each text once. @param {string[]} names */
async function licencesOf(names) {
  const byText = new Map();
  for (const name of names) {
    const text = (await licenceOf(name)).trim();
    byText.set(text, [...(byText.get(text) ?? []), `${name} ${(await manifestOf(name)).version}`]);
  }
  return [...byText].map(([text, users]) => `${users.join("\n")}\n\n${text}\n`).join("\n----\n\n");
}

async function buildCodeMirror() {
  const { version } = await manifestOf("@codemirror/view");
  const path = await folder("codemirror", version);
  const result = await esbuild.build({
    absWorkingDir: here,
    entryPoints: ["codemirror.entry.mjs"],
    outfile: join(path, "codemirror.js"),
    bundle: true,
    format: "esm",
    minify: true,
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    target,
  });
  const names = packagesIn(result.metafile);
  await writeFile(join(path, "LICENSE"), await licencesOf(names));
}

async function buildIcons() {
  const { version } = await manifestOf("@tabler/icons");
  const path = await folder("tabler-icons", version);
  const names = (await readFile(join(here, "icons.txt"), "utf8")).split("\n").filter(Boolean);
  const symbols = [];
  for (const name of names) {
    const svg = await readFile(join(modules, "@tabler/icons/icons/outline", `${name}.svg`), "utf8");
    const shapes = svg.match(/<path[^>]*\/>/g)?.filter((shape) => !shape.includes('fill="none"')) ?? [];
    symbols.push(`<symbol id="${name}" viewBox="0 0 24 24">${shapes.join("")}</symbol>`);
  }
  const open = '<svg xmlns="http://www.w3.org/2000/svg">';
  await writeFile(join(path, "sprite.svg"), `${open}\n${symbols.join("\n")}\n</svg>\n`);
  await writeFile(join(path, "LICENSE"), await licenceOf("@tabler/icons"));
}

/** One line a file: its SHA-256 and its path, for whoever checks the build. */
async function writeChecksums() {
  const lines = [];
  for (const entry of (await readdir(vendor, { withFileTypes: true })).filter((each) => each.isDirectory())) {
    for (const file of (await readdir(join(vendor, entry.name))).sort()) {
      const path = join(vendor, entry.name, file);
      const digest = createHash("sha256").update(await readFile(path)).digest("hex");
      lines.push(`${digest}  ${relative(vendor, path)}`);
    }
  }
  await writeFile(join(vendor, "SHA256SUMS"), `${lines.sort((a, b) => a.slice(66).localeCompare(b.slice(66))).join("\n")}\n`);
}

const tablerLicence = Promise.all([
  readFile(join(here, "licences", "tabler.txt"), "utf8"),
  licenceOf("@popperjs/core"),
]).then(([tabler, popper]) => `${tabler}\n----\n\nThe script contains @popperjs/core:\n\n${popper}`);

await copy("@tabler/core", "tabler", { "dist/css/tabler.min.css": "tabler.min.css", "dist/js/tabler.min.js": "tabler.min.js" }, tablerLicence);
await copy("@xterm/xterm", "xterm", { "lib/xterm.mjs": "xterm.js", "css/xterm.css": "xterm.css" });
await copy("@xterm/addon-fit", "xterm-addon-fit", { "lib/addon-fit.mjs": "addon-fit.js" });
await minify(await copy("uplot", "uplot", { "dist/uPlot.esm.js": "uplot.js", "dist/uPlot.min.css": "uplot.min.css" }), "uplot.js");
await copy("ansi_up", "ansi_up", { "ansi_up.js": "ansi_up.js" });
await buildCodeMirror();
await buildIcons();
await writeChecksums();
