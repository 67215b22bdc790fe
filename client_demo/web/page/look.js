// How the page looks and which model answers: the selects and boxes, and what they keep.

import { byId, h } from "./dom.js";
import * as store from "./store.js";

const models = byId("model");

function showTheme(theme) {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset.theme = theme;
}

function addModel(name) {
  models.append(h("option", { value: name }, name));
}

/** Takes a theme as if it had been chosen. */
export function setTheme(theme) {
  byId("theme").value = theme;
  store.changeLook({ theme });
  showTheme(theme);
}

/** Offers models by their names, beside those that are offered. */
export function offerModels(names) {
  const known = new Set([...models.options].map((option) => option.value));
  for (const name of names) if (!known.has(name)) addModel(name);
}

/** Shows which model a conversation has. */
export function showModel(name) {
  if (models.value === name || document.activeElement === models) return;
  offerModels([name]);
  models.value = name;
}

/** @param {(model: string | null) => void} onModel another was chosen */
export function startLook(onModel) {
  const { theme = "auto", numbers = false } = store.look();
  byId("theme").value = theme;
  showTheme(theme);
  byId("theme").addEventListener("change", ({ target }) => setTheme(target.value));
  byId("numbers").checked = numbers;
  document.body.classList.toggle("numbers", numbers);
  byId("numbers").addEventListener("change", ({ target }) => {
    store.changeLook({ numbers: target.checked });
    document.body.classList.toggle("numbers", target.checked);
  });
  models.addEventListener("change", () => {
    const model = models.value || null;
    store.changeLook({ model });
    onModel(model);
  });
}
