// Where the keyboard is while the page is drawn anew.

/**
 * Draws; where that took away what had the focus, somebody else takes it: a key that
 * was pressed there must not be the last that does anything.
 */
export function keepingFocus(draw, otherwise) {
  const held = document.activeElement;
  draw();
  if (held !== document.body && !held.checkVisibility()) otherwise();
}
