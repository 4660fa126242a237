/** The page: it loads the models, shows the view that the address names, and updates the header and footer. */

import { combobox } from "./combobox.js";
import { EmbeddedModel } from "./embedded.js";
import { bdi, element } from "./parts.js";
import { ServedModel } from "./served.js";
import { VIEWS, beginRender, change, changeLater, current, follow, isLatest, link, toggle } from "./state.js";
import { analogy, compare, completeIn, map, neighbours, resolveWord } from "./views.js";
import { displayText, formatNumber } from "./words.js";

const { models: facts, examples, slices } = JSON.parse(document.getElementById("data").textContent);
const models = facts.map((data, index) => (data.vectors ? new EmbeddedModel(data) : new ServedModel(data, index)));
const views = { neighbours, analogy, map, compare };
const main = document.querySelector("main");

async function render() {
  const state = beginRender();
  renderHeader();
  main.setAttribute("aria-busy", "true");
  let nodes;
  try {
    nodes = (await views[state.view](state, models, { examples, slices, onMove: renderHeader })).filter((node) => node !== null);
  } catch (error) {
    nodes = [element("p", { class: "error" }, error.message)];
  }
  if (!isLatest(state)) return;
  const focused = document.activeElement;
  const focusInMain = main.contains(focused);
  // Nodes that are still the same, such as the map, are left in place, so that they keep the focus.
  if (nodes.some((node, i) => node !== main.children[i])) main.replaceChildren(...nodes);
  if (focusInMain && !main.contains(document.activeElement)) {
    (main.contains(focused) ? focused : main).focus({ preventScroll: true }); // moving a node takes its focus away
  }
  main.removeAttribute("aria-busy");
  document.title = [main.querySelector("h2")?.textContent, "w2v explore"].filter(Boolean).join(" – ");
}

/** Render the navigation and the selected words. Their links keep the rest of the state. */
function renderHeader() {
  const state = current();
  const links = Object.entries(VIEWS).map(([view, name]) =>
    element("a", { href: link({ view }), "aria-current": view === state.view ? "page" : null }, name),
  );
  document.querySelector("nav").replaceChildren(...links);
  const button = (text, click, label = null) => element("button", { type: "button", "aria-label": label, click }, text);
  const chips = state.selected.map((word) =>
    element(
      "span",
      { class: "chip" },
      element("a", { href: link({ view: "neighbours", word }) }, bdi(word)),
      button("×", () => toggle(word), `Unselect ${displayText(word)}`),
    ),
  );
  const selection = document.getElementById("selection");
  selection.hidden = !chips.length;
  const clear = button("Clear", () => change({ selected: [] }));
  selection.replaceChildren(element("span", { class: "facts" }, "Selected"), ...chips, clear);
}

function setUpSearch() {
  const form = document.getElementById("search");
  const input = form.querySelector("input");
  combobox(input, completeIn(models), () => form.requestSubmit());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!input.value) return;
    await changeLater(resolveWord(models, input.value).then((word) => ({ view: "neighbours", word })));
    input.select();
  });
}

function setUpTheme() {
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const { style } = document.documentElement;
  const dark = () => (style.colorScheme ? style.colorScheme === "dark" : system.matches);
  const show = () => {
    button.textContent = dark() ? "Light theme" : "Dark theme";
    document.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    style.colorScheme = dark() ? "light" : "dark";
    withStorage((storage) => storage.setItem("w2v-theme", style.colorScheme));
    show();
  });
  system.addEventListener("change", show);
  const stored = withStorage((storage) => storage.getItem("w2v-theme"));
  if (stored === "dark" || stored === "light") style.colorScheme = stored;
  show();
}

/** Call a function with the browser's storage. Return undefined where there is none, as inside a notebook. */
function withStorage(use) {
  try {
    return use(localStorage);
  } catch {
    return undefined;
  }
}

function renderFooter() {
  const lines = models.map(({ data: { name, size, dimensions, search } }) => {
    const text = `: ${formatNumber(size)} words, ${formatNumber(dimensions)} dimensions; ${search}.`;
    return element("p", element("strong", displayText(name)), text);
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
setUpSearch();
setUpTheme();
renderFooter();
render();
