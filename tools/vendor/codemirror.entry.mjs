/**
 * What static/console/editor.js needs of CodeMirror 6, as one ES module.
 *
 * Built from the scoped packages: the npm package named "codemirror" is not used,
 * because its latest version has not been a CodeMirror 6 release.
 */
export { Compartment, EditorSelection, EditorState, StateEffect, StateField } from "@codemirror/state";
export {
  EditorView,
  drawSelection,
  dropCursor,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
  placeholder,
  showTooltip,
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
export { defaultKeymap, history, historyKeymap, isolateHistory } from "@codemirror/commands";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
export { json } from "@codemirror/lang-json";
export { yaml } from "@codemirror/lang-yaml";
export { properties } from "@codemirror/legacy-modes/mode/properties";
export { shell } from "@codemirror/legacy-modes/mode/shell";
export { Change, MergeView } from "@codemirror/merge";
export { tags } from "@lezer/highlight";
