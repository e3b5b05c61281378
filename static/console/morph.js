// @ts-check
/**
 * Making one piece of the page like another without taking away what is the same: focus, cursor, what is unfolded and
 * editors stay. Elements with an id are found again by it, others by their place. What draws itself
 * (`[data-draws-itself]`) is left as it is.
 */

/**
 * What is done with a field that is in both.
 * @callback Keep
 * @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} field as it is
 * @param {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} wanted
 * @returns {void}
 */

/** What the page or its scripts set, and no answer takes away. */
const OWN = new Set(["open", "data-editor", "data-editor-mounted", "aria-current"]);

/**
 * @param {Element} element
 * @param {Element} wanted
 * @param {Keep} keep
 */
export function morph(element, wanted, keep) {
  if (element.matches("[data-draws-itself]")) return;
  if (element instanceof HTMLInputElement) settle(element);
  takeAttributes(element, wanted);
  if (element.matches(".editor")) {
    takeEditor(element, wanted, keep);
    return;
  }
  if (isField(element) && isField(wanted)) {
    if (element instanceof HTMLSelectElement) takeOptions(element, wanted, keep);
    keep(element, wanted);
    return;
  }
  takeChildren(element, wanted, keep);
}

/** What a field says follows its attributes until somebody types: from here on it is `keep` that says. @param {HTMLInputElement} field */
function settle(field) {
  if (field.type === "checkbox" || field.type === "radio") field.checked = Boolean(field.checked);
  else if (field.type !== "file") field.value = String(field.value);
}

/** What is chosen stays chosen: `selected` of an option that is wanted would undo it. @param {HTMLSelectElement} field @param {Element} wanted @param {Keep} keep */
function takeOptions(field, wanted, keep) {
  const chosen = field.value;
  takeChildren(field, wanted, keep);
  if ([...field.options].some((option) => option.value === chosen)) field.value = chosen;
}

/** @param {Element} element @param {Element} wanted @param {Keep} keep */
function takeEditor(element, wanted, keep) {
  const [field, other] = [element.querySelector("textarea"), wanted.querySelector("textarea")];
  if (!field || !other) return;
  takeAttributes(field, other);
  keep(field, other);
}

/** @param {Element} element @param {Element} wanted */
function takeAttributes(element, wanted) {
  for (const { name, value } of wanted.attributes) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
  for (const name of element.getAttributeNames()) {
    if (!wanted.hasAttribute(name) && !OWN.has(name)) element.removeAttribute(name);
  }
}

/** @param {Element} element @param {Element} wanted @param {Keep} keep */
function takeChildren(element, wanted, keep) {
  /** @type {ChildNode | null} */
  let here = element.firstChild;
  for (const child of [...wanted.childNodes]) {
    const found = counterpart(here, child, element, wanted);
    if (!found) {
      element.insertBefore(document.importNode(child, true), here);
      continue;
    }
    bring(found, here);
    here = found.nextSibling;
    if (found instanceof Element && child instanceof Element) morph(found, child, keep);
    else if (found.nodeValue !== child.nodeValue) found.nodeValue = child.nodeValue;
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

/**
 * Put a node before its sibling `here`. What moves loses its focus, so where somebody is in it the others move instead.
 * @param {ChildNode} found @param {ChildNode | null} here
 */
function bring(found, here) {
  if (!found.contains(document.activeElement)) {
    if (found !== here) found.parentNode?.insertBefore(found, here);
    return;
  }
  const behind = found.nextSibling;
  for (let each = here; each && each !== found; ) {
    const next = each.nextSibling;
    found.parentNode?.insertBefore(each, behind);
    each = next;
  }
}

/**
 * What of `element` becomes `child`.
 * @param {ChildNode | null} here @param {ChildNode} child @param {Element} element @param {Element} wanted
 * @returns {ChildNode | null}
 */
function counterpart(here, child, element, wanted) {
  if (child instanceof Element && child.id) {
    return [...element.children].find((each) => each.id === child.id && each.nodeName === child.nodeName) ?? null;
  }
  if (!here || here.nodeType !== child.nodeType || here.nodeName !== child.nodeName) return null;
  // What has an id is not made into something else, as long as it is wanted itself.
  const isWanted = here instanceof Element && here.id && [...wanted.children].some((each) => each.id === here.id);
  return isWanted ? null : here;
}

/** @param {unknown} element */
function isField(element) {
  return element instanceof HTMLInputElement || element instanceof HTMLSelectElement || element instanceof HTMLTextAreaElement;
}
