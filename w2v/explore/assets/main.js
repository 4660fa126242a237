/** The page: reads the models, shows the view that its address names, and keeps what stands around the views. */

import { combobox } from "./combobox.js";
import { EmbeddedModel } from "./embedded.js";
import { bdi, element } from "./parts.js";
import { ServedModel } from "./served.js";
import { VIEWS, go, link, parse } from "./state.js";
import { analogy, compare, completeIn, map, meant, neighbours, toggled } from "./views.js";
import { grouped, shown } from "./words.js";

const { models: facts, examples } = JSON.parse(document.getElementById("data").textContent);
const models = facts.map((data, index) =>
  data.vectors === undefined ? new ServedModel(data, index) : new EmbeddedModel(data),
);
const views = { neighbours, analogy, map, compare };
const main = document.querySelector("main");
let turn = 0; // of rendering: what an earlier one finds is dropped

async function render() {
  const own = ++turn;
  const state = parse(location.hash);
  surround(state);
  main.setAttribute("aria-busy", "true");
  let nodes;
  try {
    nodes = (await views[state.view](state, models, examples, moved)).filter((node) => node !== null);
  } catch (error) {
    nodes = [element("p", { class: "error" }, error.message)];
  }
  if (own !== turn) return;
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
function surround(state) {
  const links = Object.entries(VIEWS).map(([view, name]) =>
    element("a", { href: link(state, { view }), "aria-current": view === state.view ? "page" : null }, name),
  );
  document.querySelector("nav").replaceChildren(...links);
  const chips = state.list.map((word) =>
    element(
      "span",
      { class: "chip" },
      element("a", { href: link(state, { view: "neighbours", word }) }, bdi(word)),
      element(
        "button",
        {
          type: "button",
          "aria-label": `Unselect ${shown(word)}`,
          click: () => go(link(parse(location.hash), { list: toggled(state.list, word) })),
        },
        "×",
      ),
    ),
  );
  const selection = document.getElementById("selection");
  selection.hidden = !chips.length;
  selection.replaceChildren(
    element("span", { class: "facts" }, "Selected"),
    ...chips,
    element("button", { type: "button", click: () => go(link(parse(location.hash), { list: [] })) }, "Clear"),
  );
}

function moved(state) {
  go(link(state), { replace: true });
  surround(state);
}

function search() {
  const form = document.getElementById("search");
  const input = form.querySelector("input");
  combobox(
    input,
    (typed, n) => completeIn(models, typed, n),
    () => form.requestSubmit(),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!input.value) return;
    const word = await meant(models, input.value);
    go(link(parse(location.hash), { view: "neighbours", word }));
    input.select();
  });
}

function theme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => {
    button.textContent = dark() ? "Light theme" : "Dark theme";
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remember("w2v-theme", root.dataset.theme);
    show();
  });
  system.addEventListener("change", show);
  const before = remember("w2v-theme");
  if (before === "dark" || before === "light") root.dataset.theme = before;
  show();
}

/** Read or write what the browser keeps; within a notebook it keeps nothing. */
function remember(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(name);
    localStorage.setItem(name, value);
  } catch {
    // not allowed here
  }
  return null;
}

function footer() {
  const lines = models.map(({ data }) =>
    element(
      "p",
      {},
      element("strong", {}, shown(data.name)),
      `: ${grouped(data.size)} words, ${grouped(data.dimensions)} dimensions; ${data.search}.`,
    ),
  );
  document.querySelector("footer").replaceChildren(...lines);
}

document.addEventListener("click", (event) => {
  const anchor = event.target.closest?.('a[href^="#"]');
  if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(anchor.getAttribute("href"));
});
addEventListener("hashchange", render);
search();
theme();
footer();
render();
