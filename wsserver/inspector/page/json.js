// JSON as elements, in colours. Text stays text.

import { h } from "/page/dom.js";

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d[\d.eE+-]*)/g;

/** The nodes of a value's JSON. @returns {Node[]} */
export function jsonNodes(value) {
  const text = JSON.stringify(value, null, 2);
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [whole, string, colon, word] = match;
    nodes.push(document.createTextNode(text.slice(end, match.index)));
    const kind = string === undefined ? (word === undefined ? "number" : "word") : colon === undefined ? "string" : "name";
    nodes.push(h("span", { class: kind }, string ?? whole), document.createTextNode(colon ?? ""));
    end = match.index + whole.length;
  }
  nodes.push(document.createTextNode(text.slice(end)));
  return nodes;
}
