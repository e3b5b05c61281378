/**
 * What static/console/editor.js needs of CodeMirror 6, as one ES module.
 *
 * Built from the scoped packages: the npm package named "codemirror" is not used,
 * because its latest version has not been a CodeMirror 6 release.
 */
export { Compartment, EditorSelection, EditorState } from "@codemirror/state";
export {
  EditorView,
  crosshairCursor,
  drawSelection,
  dropCursor,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
  placeholder,
  rectangularSelection,
} from "@codemirror/view";
export {
  HighlightStyle,
  StreamLanguage,
  bracketMatching,
  foldGutter,
  foldKeymap,
  indentOnInput,
  indentUnit,
  syntaxHighlighting,
} from "@codemirror/language";
export { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { forEachDiagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
export { json } from "@codemirror/lang-json";
export { yaml } from "@codemirror/lang-yaml";
export { shell } from "@codemirror/legacy-modes/mode/shell";
export { MergeView, unifiedMergeView } from "@codemirror/merge";
export { tags } from "@lezer/highlight";
