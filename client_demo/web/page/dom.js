// Elements from values. Text always becomes text nodes: nothing here, and nothing
// that uses it, makes HTML out of strings.

/**
 * @param {string} tag
 * @param {Record<string, any>} [props] properties; `class`, `data-*`, `aria-*` and
 *   `role` are set as attributes, `on*` are listeners
 * @param {...(Node | string | null | false | undefined)} children
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined) continue;
    if (name === "class" || name === "role" || /^(data|aria)-/.test(name)) {
      element.setAttribute(name, value);
    } else if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else {
      element[name] = value;
    }
  }
  return fill(element, ...children);
}

/** Replaces what is in an element; children that are not there may be false. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter(Boolean));
  return element;
}

/** Changes text only where it differs, so that a frame without news costs nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The element with that id; the page has it. */
export function byId(id) {
  return document.getElementById(id);
}
