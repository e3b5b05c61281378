// @ts-check
/** How the editor looks, in the page's own colours, light and dark alike; and its words. */

import { EditorView, HighlightStyle, syntaxHighlighting, tags } from "../vendor/codemirror-6.43.15/codemirror.js";
import { gettext } from "./i18n.js";

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "transparent", fontSize: "0.78125rem" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", maxHeight: "var(--editor-height, 65vh)" },
  ".cm-content": { padding: "0.375rem 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 0.75rem 0 0.25rem" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { color: "var(--text-muted)", backgroundColor: "transparent", borderRight: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 0.25rem 0 0.5rem", minWidth: "1.75rem" },
  ".cm-foldGutter .cm-gutterElement": { cursor: "pointer" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  ".cm-activeLineGutter": { color: "var(--text)", backgroundColor: "transparent" },
  "& .cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    background: "color-mix(in oklab, var(--accent) 24%, transparent)",
  },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in oklab, var(--accent) 14%, transparent)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "transparent", outline: "1px solid var(--line-strong)" },
  ".cm-foldPlaceholder": { border: "1px solid var(--line-strong)", color: "var(--text-muted)", backgroundColor: "transparent" },
  ".cm-placeholder": { color: "var(--text-muted)" },
  ".cm-panels": { color: "var(--text)", backgroundColor: "var(--surface-raised)", fontFamily: "var(--sans)" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-textfield": { padding: "0.1875rem 0.375rem", border: "1px solid var(--line-strong)", borderRadius: "4px", color: "var(--text)", backgroundColor: "var(--surface)" },
  ".cm-button": { padding: "0.1875rem 0.5rem", border: "1px solid var(--line-strong)", borderRadius: "4px", color: "var(--text)", background: "var(--surface)" },
  ".cm-panel.cm-search": { display: "flex", flexWrap: "wrap", alignItems: "center", gap: "0.25rem 0.375rem", padding: "0.375rem 2rem 0.375rem 0.5rem", fontSize: "0.75rem" },
  ".cm-panel.cm-search br": { flexBasis: "100%", height: "0", content: "''" },
  ".cm-panel.cm-search label": { display: "inline-flex", alignItems: "center", gap: "0.25rem", fontSize: "inherit" },
  ".cm-panel.cm-search input, .cm-panel.cm-search button, .cm-panel.cm-search label": { margin: "0", fontSize: "inherit" },
  ".cm-panel.cm-search input:focus-visible, .cm-panel.cm-search button:focus-visible": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-panel.cm-search [name=close]": { top: "0.375rem", right: "0.5rem", color: "var(--text)", fontSize: "1rem" },
  ".cm-searchMatch": { backgroundColor: "oklch(88% 0.14 95deg / 45%)" },
  ".cm-searchMatch.cm-searchMatch-selected": { backgroundColor: "oklch(80% 0.15 80deg / 60%)" },
  ".cm-tooltip": { border: "1px solid var(--line-strong)", borderRadius: "6px", color: "var(--text)", backgroundColor: "var(--surface-raised)", fontFamily: "var(--sans)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { color: "var(--text)", background: "var(--accent-soft)" },
  ".cm-tooltip-autocomplete ul li .cm-completionDetail": { color: "var(--text-muted)", fontStyle: "normal", fontSize: "0.6875rem" },
  ".cm-tooltip.cm-completionInfo": { padding: "0" },
  // Where there is no room beside the list, the card would lie over it; F1 shows it.
  "@media (width < 768px)": { ".cm-tooltip.cm-completionInfo": { display: "none" } },
  ".cm-help": { maxWidth: "26rem", padding: "0.375rem 0.625rem", fontSize: "0.8125rem", lineHeight: "1.45" },
  ".cm-help strong": { fontFamily: "var(--mono)", fontWeight: "600" },
  ".cm-help span, .cm-help-facts": { color: "var(--text-muted)", fontSize: "0.75rem" },
  ".cm-help p": { margin: "0.125rem 0 0" },
  ".cm-diagnostic": { padding: "0.25rem 0.5rem", maxWidth: "32rem" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--failed)" },
  ".cm-diagnosticAction": { color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "4px", backgroundColor: "var(--surface)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--pending)" },
  ".cm-diagnostic-info": { borderLeft: "3px solid var(--running)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--failed) 1px", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline dashed var(--pending) 1.5px", textUnderlineOffset: "3px" },
  ".cm-lintRange-info": { backgroundImage: "none", textDecoration: "underline dotted var(--running) 1.5px", textUnderlineOffset: "3px" },
  ".cm-gutter-lint": { width: "1.1rem" },
  ".cm-gutter-lint .cm-gutterElement": { display: "grid", placeItems: "center", padding: "0 0 0 0.25rem" },
  ".cm-lint-marker.cm-lint-marker": { boxSizing: "border-box", content: "normal", width: "0.6rem", height: "0.6rem" },
  // An octagon for a problem, a triangle for a loss, a dot for a note: told apart without their colours.
  ".cm-lint-marker-error": { background: "var(--failed)", clipPath: "polygon(30% 0, 70% 0, 100% 30%, 100% 70%, 70% 100%, 30% 100%, 0 70%, 0 30%)" },
  ".cm-lint-marker-warning": { background: "var(--pending)", clipPath: "polygon(50% 0, 100% 100%, 0 100%)" },
  ".cm-lint-marker-info": { border: "2px solid var(--running)", borderRadius: "50%" },
});

/** Two texts side by side; below each other where there is no room. */
const merge = EditorView.theme({
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "color-mix(in oklab, var(--failed) 8%, transparent)" },
  "&.cm-merge-b .cm-changedLine": { backgroundColor: "color-mix(in oklab, var(--succeeded) 10%, transparent)" },
  "&.cm-merge-a .cm-changedText": { background: "color-mix(in oklab, var(--failed) 24%, transparent)" },
  "&.cm-merge-b .cm-changedText": { background: "color-mix(in oklab, var(--succeeded) 26%, transparent)" },
  ".cm-unlike &.cm-merge-a .cm-changedLine, .cm-unlike &.cm-merge-b .cm-changedLine": { backgroundColor: "transparent" },
  ".cm-collapsedLines": { color: "var(--text-muted)", background: "var(--surface-sunken)" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: "'⋯'" },
});

const highlight = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--succeeded)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--pending)" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--lost)" },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: "var(--text-muted)", fontStyle: "italic" },
  { tag: [tags.variableName, tags.labelName], color: "var(--running)" },
  { tag: [tags.punctuation, tags.separator, tags.bracket], color: "var(--text-muted)" },
  { tag: tags.invalid, color: "var(--failed)" },
]);

export const look = [theme, syntaxHighlighting(highlight)];

export const mergeLook = [look, merge];

/** CodeMirror's own words, in the person's language. */
export const phrases = {
  Find: gettext("Find"),
  Replace: gettext("Replace with"),
  next: gettext("next"),
  previous: gettext("previous"),
  all: gettext("all"),
  "match case": gettext("match case"),
  "by word": gettext("whole words"),
  regexp: gettext("regular expression"),
  replace: gettext("replace"),
  "replace all": gettext("replace all"),
  close: gettext("close"),
  "Go to line": gettext("Go to line"),
  go: gettext("go"),
  Diagnostics: gettext("Problems"),
  "No diagnostics": gettext("No problems"),
  "Fold line": gettext("Fold line"),
  "Unfold line": gettext("Unfold line"),
  "folded code": gettext("folded lines"),
  unfold: gettext("unfold"),
  Completions: gettext("Suggestions"),
  "$ unchanged lines": gettext("$ unchanged lines"),
};
