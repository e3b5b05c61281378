// @ts-check
/**
 * What is typed over a selection is put in its place by the editor. The browser would keep the look of what stood
 * there, such as the colours of a problem, by a style attribute, which the content security policy forbids.
 */

import { EditorView } from "../vendor/codemirror-6.43.15/codemirror.js";

export const typingOver = EditorView.domEventHandlers({
  /** @param {InputEvent} event @param {any} view */
  beforeinput(event, view) {
    const { main } = view.state.selection;
    const text = event.inputType === "insertText" ? event.data : null;
    if (!text || main.empty || event.isComposing || view.state.readOnly) return false;
    const typed = () =>
      view.state.update(view.state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    // Such as closing brackets, which go around what is selected.
    const handlers = view.state.facet(EditorView.inputHandler);
    const isHandled = handlers.some((/** @type {any} */ handle) => handle(view, main.from, main.to, text, typed));
    if (!isHandled) view.dispatch(typed());
    return true;
  },
});
