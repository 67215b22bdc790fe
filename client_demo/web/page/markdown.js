// Markdown that grows: text is written as it comes, what stands is never touched
// again. The parser is vendored; this is its renderer, and it is the guard: it makes
// elements from a closed list, text as text nodes, and no attribute but an `href`
// whose scheme is allowed. Images are links, as loading one would tell on the reader.

import * as smd from "../vendor/streaming-markdown.js";

const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const MAX_PENDING = 2_048;
const SLICE = 1_024;

const TAGS = {
  [smd.PARAGRAPH]: "p",
  [smd.HEADING_1]: "h2",
  [smd.HEADING_2]: "h3",
  [smd.HEADING_3]: "h4",
  [smd.HEADING_4]: "h5",
  [smd.HEADING_5]: "h6",
  [smd.HEADING_6]: "h6",
  [smd.BLOCKQUOTE]: "blockquote",
  [smd.LIST_UNORDERED]: "ul",
  [smd.LIST_ORDERED]: "ol",
  [smd.LIST_ITEM]: "li",
  [smd.ITALIC_AST]: "em",
  [smd.ITALIC_UND]: "em",
  [smd.STRONG_AST]: "strong",
  [smd.STRONG_UND]: "strong",
  [smd.STRIKE]: "s",
  [smd.CODE_INLINE]: "code",
  [smd.LINK]: "a",
  [smd.RAW_URL]: "a",
  [smd.IMAGE]: "a",
  [smd.LINE_BREAK]: "br",
  [smd.RULE]: "hr",
};

// Where an underscore is what it is, or may end what an underscore began.
const UNDERSCORE_STAYS = new Set([
  smd.CODE_BLOCK, smd.CODE_FENCE, smd.CODE_INLINE, smd.LINK, smd.IMAGE, smd.RAW_URL,
  smd.MAYBE_URL, smd.EQUATION_BLOCK, smd.EQUATION_INLINE, smd.ITALIC_UND, smd.STRONG_UND,
]);

// What has no text of its own.
const NO_TEXT = new Set([
  smd.DOCUMENT, smd.LINE_BREAK, smd.NEWLINE, smd.BLOCKQUOTE, smd.LIST_UNORDERED,
  smd.LIST_ORDERED, smd.TABLE, smd.TABLE_ROW, smd.MAYBE_TASK,
]);

/** The URL if a person may follow it from a model's text, else null. */
export function safeUrl(text) {
  try {
    const url = new URL(text);
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Writes Markdown into an element. */
export class MarkdownWriter {
  #root;
  #parser;
  #plain = null;
  #previous = "";
  #held = null;

  constructor(root) {
    this.#root = root;
    this.#parser = smd.parser(renderer(root));
  }

  /** Adds text; cost depends on its length, not on what is there. */
  write(text) {
    if (this.#plain) {
      this.#plain.appendData(text);
      return;
    }
    this.#held?.remove();
    this.#held = null;
    try {
      for (let at = 0; at < text.length; ) {
        const end = sliceEnd(text, at);
        this.#feed(text.slice(at, end));
        at = end;
      }
      this.#showHeld();
    } catch {
      this.#goPlain(text);
    }
  }

  /** Shows what was held back for lack of the next character. */
  end() {
    this.#held?.remove();
    this.#held = null;
    if (!this.#plain) smd.parser_end(this.#parser);
  }

  /** The parser is always one character behind: shows it, until the next is there. */
  #showHeld() {
    const { pending, token, renderer } = this.#parser;
    if (pending.length !== 1 || NO_TEXT.has(token) || !/[\p{L}\p{N}.,:;?)]/u.test(pending)) return;
    this.#held = document.createTextNode(pending);
    renderer.data.stack.at(-1).append(this.#held);
  }

  #feed(text) {
    const pieces = text.split("_");
    this.#put(pieces[0]);
    for (const piece of pieces.slice(1)) {
      this.#put(this.#insideWord() ? "\\_" : "_");
      this.#previous = "_";
      this.#put(piece);
    }
  }

  /** The parser takes any underscore for emphasis; in `snake_case` it is none. */
  #insideWord() {
    const { token, tokens, len, pending } = this.#parser;
    if (!/[\p{L}\p{N}]/u.test(this.#previous) || pending.startsWith("```")) return false;
    if (UNDERSCORE_STAYS.has(token)) return false;
    return !tokens.subarray(0, len + 1).some((open) => UNDERSCORE_STAYS.has(open));
  }

  #put(text) {
    if (text === "") return;
    smd.parser_write(this.#parser, text);
    this.#previous = text.at(-1);
    if (this.#parser.pending.length > MAX_PENDING) this.#release();
  }

  /** Gives up on a construct that does not end: its text must be seen, and cheaply. */
  #release() {
    const parser = this.#parser;
    if (parser.token === smd.LINK || parser.token === smd.IMAGE) {
      parser.renderer.add_text(parser.renderer.data, parser.pending);
      parser.pending = "";
    } else {
      smd.parser_write(parser, parser.token === smd.RAW_URL ? " " : "\n");
    }
  }

  /** The parser failed: better plain than not at all. */
  #goPlain(text) {
    this.#plain = document.createTextNode(text);
    const block = document.createElement("p");
    block.className = "plain";
    block.append(this.#plain);
    this.#root.append(block);
  }
}

function sliceEnd(text, at) {
  const end = at + SLICE;
  if (end >= text.length) return text.length;
  const high = text.charCodeAt(end - 1);
  return high >= 0xd800 && high <= 0xdbff ? end + 1 : end;
}

function renderer(root) {
  return {
    data: { stack: [root] },
    add_token: ({ stack }, token) => {
      if (token !== smd.DOCUMENT) stack.push(opened(stack.at(-1), token));
    },
    end_token: ({ stack }) => {
      if (stack.length > 1) stack.pop();
    },
    add_text: ({ stack }, text) => {
      const last = stack.at(-1).lastChild;
      if (last?.nodeType === 3) last.appendData(text);
      else stack.at(-1).append(text);
    },
    set_attr: ({ stack }, attr, value) => setAttribute(stack.at(-1), attr, value),
  };
}

function opened(parent, token) {
  switch (token) {
    case smd.CODE_BLOCK:
    case smd.CODE_FENCE:
      return openedCode(parent);
    case smd.TABLE: {
      const scroller = append(parent, "div", "table");
      return append(scroller, "table");
    }
    case smd.TABLE_ROW:
      return append(tableSection(parent), "tr");
    case smd.TABLE_CELL:
      return append(parent, parent.parentNode?.tagName === "THEAD" ? "th" : "td");
    case smd.CHECKBOX: {
      const box = append(parent, "input");
      box.type = "checkbox";
      box.disabled = true;
      return box;
    }
    case smd.EQUATION_BLOCK:
      return append(parent, "div", "math");
    case smd.EQUATION_INLINE:
      return append(parent, "span", "math");
    case smd.IMAGE:
      return append(parent, "a", "image");
    default:
      return append(parent, TAGS[token] ?? "span");
  }
}

function openedCode(parent) {
  const figure = append(parent, "figure", "code");
  const bar = append(figure, "figcaption");
  append(bar, "span");
  const copy = append(bar, "button", "copy-code");
  copy.type = "button";
  copy.textContent = "Copy";
  return append(append(figure, "pre"), "code");
}

function tableSection(table) {
  if (table.childNodes.length === 0) return append(table, "thead");
  return table.childNodes[1] ?? append(table, "tbody");
}

function append(parent, tag, className) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  parent.append(element);
  return element;
}

function setAttribute(element, attr, value) {
  switch (attr) {
    case smd.HREF:
    case smd.SRC: {
      const url = safeUrl(value);
      if (url === null) return;
      element.href = url;
      element.title = url;
      element.target = "_blank";
      element.rel = "noopener noreferrer nofollow";
      return;
    }
    case smd.LANG:
      element.closest("figure").querySelector("figcaption span").textContent = value.slice(0, 32);
      return;
    case smd.START:
      element.start = Number(value);
      return;
    case smd.CHECKED:
      element.checked = true;
      return;
    default:
  }
}
