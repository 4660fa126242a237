/** The page: reads the models, shows the view that its address names, and keeps what stands around the views. */

import { combobox } from "./combobox.js";
import { EmbeddedModel } from "./embedded.js";
import { bdi, element } from "./parts.js";
import { ServedModel } from "./served.js";
import { VIEWS, change, changeLater, current, follow, isLatest, link, toShow, toggle } from "./state.js";
import { analogy, compare, completeIn, map, meant, neighbours } from "./views.js";
import { grouped, shown } from "./words.js";

const { models: facts, examples } = JSON.parse(document.getElementById("data").textContent);
const models = facts.map((data, index) => (data.vectors ? new EmbeddedModel(data) : new ServedModel(data, index)));
const views = { neighbours, analogy, map, compare };
const main = document.querySelector("main");

async function render() {
  const state = toShow();
  surround();
  main.setAttribute("aria-busy", "true");
  let nodes;
  try {
    nodes = (await views[state.view](state, models, examples, surround)).filter((node) => node !== null);
  } catch (error) {
    nodes = [element("p", { class: "error" }, error.message)];
  }
  if (!isLatest(state)) return;
  const before = document.activeElement;
  const focused = main.contains(before);
  if (nodes.some((node, i) => node !== main.children[i])) main.replaceChildren(...nodes); // the map stays, and its focus
  if (focused && !main.contains(document.activeElement)) {
    (main.contains(before) ? before : main).focus({ preventScroll: true }); // a node that stays may have lost it
  }
  main.removeAttribute("aria-busy");
  document.title = [main.querySelector("h2")?.textContent, "w2v explore"].filter(Boolean).join(" – ");
}

/** The navigation and the selected words: their links keep the rest of the state. */
function surround() {
  const state = current();
  const links = Object.entries(VIEWS).map(([view, name]) =>
    element("a", { href: link({ view }), "aria-current": view === state.view ? "page" : null }, name),
  );
  document.querySelector("nav").replaceChildren(...links);
  const button = (text, click, label = null) => element("button", { type: "button", "aria-label": label, click }, text);
  const chips = state.list.map((word) =>
    element(
      "span",
      { class: "chip" },
      element("a", { href: link({ view: "neighbours", word }) }, bdi(word)),
      button("×", () => toggle(word), `Unselect ${shown(word)}`),
    ),
  );
  const selection = document.getElementById("selection");
  selection.hidden = !chips.length;
  const clear = button("Clear", () => change({ list: [] }));
  selection.replaceChildren(element("span", { class: "facts" }, "Selected"), ...chips, clear);
}

function search() {
  const form = document.getElementById("search");
  const input = form.querySelector("input");
  combobox(input, completeIn(models), () => form.requestSubmit());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!input.value) return;
    await changeLater(meant(models, input.value).then((word) => ({ view: "neighbours", word })));
    input.select();
  });
}

function theme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const { style } = document.documentElement;
  const dark = () => (style.colorScheme ? style.colorScheme === "dark" : system.matches);
  const show = () => {
    button.textContent = dark() ? "Light theme" : "Dark theme";
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    style.colorScheme = remember("w2v-theme", dark() ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  const before = remember("w2v-theme");
  if (before === "dark" || before === "light") style.colorScheme = before;
  show();
}

/** The value, which the browser keeps, or without one the value that it keeps; within a notebook it keeps nothing. */
function remember(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch {
    // not allowed here
  }
  return value;
}

function footer() {
  const lines = models.map(({ data: { name, size, dimensions, search } }) => {
    const text = `: ${grouped(size)} words, ${grouped(dimensions)} dimensions; ${search}.`;
    return element("p", element("strong", shown(name)), text);
  });
  document.querySelector("footer").replaceChildren(...lines);
}

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.('a[href^="#"]');
  if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  follow(anchor.getAttribute("href"));
});
addEventListener("hashchange", render);
search();
theme();
footer();
render();
