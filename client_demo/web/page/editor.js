// A message while it is edited, in its own place.

import { isSendKey } from "./composer.js";
import { h } from "./dom.js";

/**
 * @param {string} text
 * @param {{save(text: string): void, leave(): void}} on
 */
export function editor(text, { save, leave }) {
  const input = h("textarea", { value: text, rows: 1, "aria-label": "Edit your message" });
  const fit = () => {
    input.style.height = "auto";
    input.style.height = `${input.scrollHeight}px`;
  };
  const submit = () => {
    if (input.value.trim() === "") return;
    save(input.value);
    leave();
  };
  input.addEventListener("input", fit);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) {
      event.stopPropagation();
      leave();
    } else if (isSendKey(event)) {
      event.preventDefault();
      submit();
    }
  });
  const button = (label, kind, run) => h("button", { type: "button", class: kind, onclick: run }, label);
  const element = h(
    "div",
    { class: "editor" },
    input,
    h("div", { class: "row" }, button("Cancel", "", leave), button("Send", "primary", submit)),
  );
  return {
    element,
    focus() {
      fit();
      input.focus();
      input.setSelectionRange(input.value.length, input.value.length);
    },
  };
}
