/** The views. Each returns the nodes that `main` shows for a state and the models. A view shows the examples until the
 *  user has chosen words. With `slices`, all models have one coordinate system. */

import { combobox } from "./combobox.js";
import { WordMap, linkMaps } from "./map.js";
import { announce, bars, bdi, element, score, table } from "./parts.js";
import { RESULT_COUNTS, change, changeLater, current, isLatest, link, toggle } from "./state.js";
import { displayText, fold, formatNumber } from "./words.js";

/** Return a function that completes typed text to the words of any model, for a combobox. */
export const completeIn = (models) => async (typed, topn) => {
  const completions = new Map();
  for (const words of await Promise.all(models.map((model) => model.complete(typed, topn)))) {
    for (const each of words) if (!completions.has(each.word)) completions.set(each.word, each);
  }
  return [...completions.values()].slice(0, topn);
};

/** Return the word of a model that equals the typed text except for case and accents, or else the typed text. */
export async function resolveWord(models, typed) {
  const [first] = await completeIn(models)(typed, 1);
  return first && fold(first.word) === fold(typed) ? first.word : typed;
}

// -- shared elements ----------------------------------------------------------------------------

/** Call the asynchronous `query` with each item. Return its answers, or { item, error } where it fails. */
const queryEach = (items, query) =>
  Promise.all(items.map((item) => query(item).catch(({ message }) => ({ item, error: message }))));

/** Create the heading of a view, with instructions. */
const title = (heading, text) =>
  element("div", { class: "title" }, element("h2", heading), text ? element("p", text) : null);

const wordLink = (word) => element("a", { href: link({ view: "neighbours", word }) }, bdi(word));

const isNumber = (value) => typeof value === "number";

const card = ({ data: { name } }, ...children) =>
  element("section", { class: "card", "aria-label": displayText(name) }, element("h3", displayText(name)), children);

const columns = (children) => element("div", { class: "columns" }, children);

const labelled = (text, input) => [element("label", { class: "hidden", for: input.id }, text), input];

/** Return the card of a model with an error, and suggest words that begin like the unknown one. */
async function failure(state, model, error, typed) {
  let suggestions = [];
  for (let length = Math.min(typed.length, 20); length > 0 && !suggestions.length; length--) {
    suggestions = await completeIn([model])(typed.slice(0, length), 5);
  }
  const links = suggestions.map(({ word }) => wordLink(word));
  announce(state, error);
  const message = element(
    "div",
    { class: "error" },
    element("p", bdi(typed), ": ", error),
    links.length ? element("p", { class: "words" }, "Words with the same beginning: ", links) : null,
  );
  return card(model, message);
}

/** Return the words that are in all answers; none if there is only one answer. */
function sharedWords(answers) {
  const [first, ...others] = answers.map(({ neighbours }) => new Set(neighbours?.map(({ word }) => word)));
  return new Set([...first].filter((word) => others.length && others.every((other) => other.has(word))));
}

function sharedLine(shared, answers) {
  if (answers.length < 2 || answers.some(({ error }) => error)) return null;
  const total = Math.max(...answers.map(({ neighbours }) => neighbours.length));
  const text = `${shared.size} of ${total} words are in every list, marked `;
  return element("p", { class: "shared-line" }, text, sharedMark());
}

function sharedMark() {
  const hidden = element("span", { class: "hidden" }, " in every model");
  return element("span", { class: "shared", title: "in every model" }, "●", hidden);
}

function results(caption, words, shared = new Set()) {
  if (!words.length) return element("p", "No other words.");
  const hasCounts = words.some(({ count }) => isNumber(count));
  const rows = words.map((each) => [
    element("span", wordLink(each.word), shared.has(each.word) ? [" ", sharedMark()] : null),
    score(each.score, words[0].score),
    ...(hasCounts ? [element("td", { class: "count" }, formatNumber(each.count))] : []),
  ]);
  return table(caption, ["word", "score", ...(hasCounts ? ["count"] : [])], rows, "results");
}

function resultCountSelect({ topn }) {
  const options = RESULT_COUNTS.map((number) => element("option", { selected: number === topn }, String(number)));
  const selected = (event) => change({ topn: Number(event.target.value) });
  return element("label", "Results ", element("select", { change: selected }, options));
}

// -- neighbours ---------------------------------------------------------------------------------

const TYPE_A_WORD = "Type a word in the field above to see the words nearest to it.";

export async function neighbours(state, models, { examples, slices }) {
  const word = state.word ?? examples.word;
  if (word === null) return [title("Neighbours", TYPE_A_WORD)];
  const answers = await queryEach(models, async (model) => {
    const [nearest, vector] = await Promise.all([model.nearest([word], [], "add", state.topn), model.vector(word)]);
    return { neighbours: nearest, vector };
  });
  const shared = sharedWords(answers);
  const sections = models.map((model, i) => {
    const { neighbours: nearest, vector, error } = answers[i];
    if (error) return failure(state, model, error, word);
    const length = Math.sqrt(vector.values.reduce((sum, value) => sum + value * value, 0));
    const unknown = "Not in the vocabulary: composed of its n-grams";
    const rank = isNumber(vector.row) ? `Rank ${formatNumber(vector.row + 1)}` : unknown;
    const times = isNumber(vector.count) ? `, ${formatNumber(vector.count)} times in the text` : "";
    return card(
      model,
      element("p", { class: "facts" }, `${rank}${times}; vector length ${length.toPrecision(3)}`),
      columns([
        results(`Neighbours of ${displayText(word)} in ${model.data.name}`, nearest, shared),
        element("div", element("h4", "Its vector"), bars(word, vector.values)),
      ]),
    );
  });
  const head = title(["Neighbours of ", bdi(word)], state.word === null ? TYPE_A_WORD : "");
  const cards = columns(await Promise.all(sections));
  if (answers.every(({ error }) => error)) return [head, cards];
  announce(state, `Neighbours of ${displayText(word)}`);
  const selected = state.selected.includes(word);
  const select = { type: "button", "aria-pressed": String(selected), click: () => toggle(word) };
  const actions = element(
    "p",
    { class: "actions" },
    element("button", select, selected ? "Selected" : "Select"),
    element("a", { class: "button", href: link({ view: "map", mapViews: [] }) }, "Show on the map"),
    resultCountSelect(state),
  );
  const known = models.flatMap(({ data }, i) => (answers[i].error ? [] : [{ name: data.name, ...answers[i].vector }]));
  const between = slices && known.length > 1 ? cosinesBetweenSlices(word, known) : null;
  return [head, actions, sharedLine(shared, answers), between, cards];
}

/** Create a card with the cosines between the vectors of a word in several slices. `vectors` have a name and values. */
function cosinesBetweenSlices(word, vectors) {
  const names = vectors.map(({ name }) => displayText(name));
  const cells = vectors.map((one, i) => [names[i], ...vectors.map((other) => cosineCell(one, other))]);
  const caption = `Cosines between the vectors of ${displayText(word)} in the slices`;
  const heading = element("h3", "Cosines between the vectors of ", bdi(word), " in the slices");
  return element("section", { class: "card slices" }, heading, table(caption, ["cosine", ...names], cells, "matrix"));
}

// -- analogy ------------------------------------------------------------------------------------

const FORMULAS = [
  ["add", "3CosAdd", "cosine with the sum of unit vectors"],
  ["mul", "3CosMul", "product of cosines, shifted to 0…1"],
];

export async function analogy(state, models, { examples }) {
  const [a, b, c] = examples.analogy;
  const isExample = !state.plus.length && !state.minus.length && a !== undefined;
  const { plus, minus } = isExample ? { plus: [a, c], minus: [b] } : state;
  const heading = title("Analogy", "Which word is to the third as the first is to the second?");
  const head = [heading, analogyForm(plus, minus, models)];
  if (!plus.length && !minus.length) return head;
  const answers = await Promise.all(
    FORMULAS.map(([method]) =>
      queryEach(models, async (model) => ({ neighbours: await model.nearest(plus, minus, method, state.topn) })),
    ),
  );
  const shared = answers.map(sharedWords);
  const sections = models.map(async (model, i) => {
    const { error } = answers[0][i];
    if (error) {
      const vectors = await queryEach([...plus, ...minus], (word) => model.vector(word));
      const unknown = vectors.find((answer) => answer.error)?.item;
      return failure(state, model, error, unknown ?? plus[0] ?? minus[0]);
    }
    const tables = FORMULAS.map(([, name, meaning], j) =>
      element(
        "div",
        element("h4", name, " ", element("small", meaning)),
        results(`${name} in ${model.data.name}`, answers[j][i].neighbours, shared[j]),
      ),
    );
    return card(model, columns(tables));
  });
  const [first, ...others] = plus.map((word) => bdi(word));
  const leftSide = [first ?? "", minus.map((word) => [" − ", bdi(word)]), others.map((word) => [" + ", word])];
  const best = answers[0].find((answer) => answer.neighbours?.length)?.neighbours[0];
  if (best) announce(state, `${displayText(best.word)} is nearest`);
  const equation = [leftSide, " ≈ ", best ? element("strong", bdi(best.word)) : "?"];
  return [
    ...head,
    element("p", { class: "actions" }, element("span", { class: "equation" }, equation), resultCountSelect(state)),
    sharedLine(shared[0], answers[0]),
    element("div", { class: models.length > 1 ? "columns" : "" }, await Promise.all(sections)),
  ];
}

function analogyForm(plus, minus, models) {
  const inputs = [
    ["analogy-a", plus[0], "king"],
    ["analogy-b", minus[0], "man"],
    ["analogy-c", plus[1], "woman"],
  ].map(([id, value = "", placeholder]) => element("input", { id, value, placeholder, required: true }));
  const submit = async (event) => {
    event.preventDefault();
    const words = Promise.all(inputs.map((input) => resolveWord(models, input.value)));
    await changeLater(words.then(([a, b, c]) => ({ plus: [a, c], minus: [b] })));
  };
  const form = element(
    "form",
    { class: "analogy", submit },
    element("div", labelled("Word", inputs[0])),
    element("span", "−"),
    element("div", labelled("minus word", inputs[1])),
    element("span", "+"),
    element("div", labelled("plus word", inputs[2])),
    element("button", { class: "primary" }, "Solve"),
  );
  for (const input of inputs) combobox(input, completeIn(models));
  return form;
}

// -- map ----------------------------------------------------------------------------------------

let mapView = null; // a promise of the maps and elements of the view, created when the view is first shown

export async function map(state, models, { examples, slices, onMove }) {
  mapView ??= createMapView(models, slices, onMove);
  const { maps, lists, nodes } = await mapView;
  for (const each of maps) each.cancelSettle();
  const word = state.word ?? examples.word;
  const nearest = async (model) =>
    word === null ? [] : model.nearest([word], [], "add", RESULT_COUNTS[0]).catch(() => []);
  const answers = await Promise.all(models.map(nearest));
  if (!isLatest(state)) return nodes;
  const { mapViews } = current(); // read again: the user may have moved the map while the answers were on their way
  maps.forEach((each, i) => {
    each.marks = { selected: state.selected, word, near: answers[i].map((answer) => answer.word) };
  });
  maps.forEach((each, i) => {
    each.show(mapViews[each.index], state.word !== null);
    lists[i].hidden = !answers[i].length;
    lists[i].replaceChildren(
      element("h4", "Neighbours of ", wordLink(word ?? "")),
      results(`Neighbours of ${displayText(word ?? "")} in ${models[i].data.name}`, answers[i]),
    );
  });
  return nodes;
}

async function createMapView(models, slices, onMove) {
  const maps = await Promise.all(
    models.map(
      async (model, i) => new WordMap(await model.map(), displayText(model.data.name), slices ? 0 : i, onMove),
    ),
  );
  if (slices) linkMaps(maps);
  const lists = models.map(() => element("div"));
  const cards = models.map((model, i) =>
    card(model, element("div", { class: "side-by-side" }, maps[i].element, lists[i])),
  );
  const path = slices ? " All maps have the same axes. The dashed line leads from slice to slice." : "";
  const head = title("Map", `Scroll or pinch to see more words, drag to move, click a word to select it.${path}`);
  return { maps, lists, nodes: [head, columns(cards)] };
}

// -- compare ------------------------------------------------------------------------------------

let addForm = null; // kept while the view changes, so that the text being typed is not lost

function createAddForm(models) {
  const input = element("input", { id: "compare-word", placeholder: "Add a word", required: true });
  const submit = async (event) => {
    event.preventDefault();
    const typed = input.value;
    input.value = "";
    const word = await resolveWord(models, typed);
    if (!current().selected.includes(word)) toggle(word);
  };
  const fields = [element("div", labelled("Add a word", input)), element("button", "Add")];
  const form = element("form", { class: "actions", submit }, fields);
  combobox(input, completeIn(models), () => form.requestSubmit());
  return form;
}

export async function compare(state, models, { examples }) {
  addForm ??= createAddForm(models);
  const heading = title("Compare", "Add words here, or select them on the map, to see their cosines and vectors.");
  const head = [heading, addForm];
  const example = [...examples.analogy, examples.word].filter((word) => word !== null);
  const words = state.selected.length ? state.selected : example;
  if (!words.length) return head;
  const sections = models.map(async (model) => {
    const answers = await queryEach(words, async (word) => ({ word, ...(await model.vector(word)) }));
    const known = answers.filter(({ values }) => values);
    const failures = answers.filter(({ error }) => error);
    const cells = known.map((one) => [wordLink(one.word), ...known.map((other) => cosineCell(one, other))]);
    const headings = ["cosine", ...known.map(({ word }) => bdi(word))];
    const vectors = known.map(({ word, values }) => element("div", element("h4", bdi(word)), bars(word, values)));
    return card(
      model,
      failures.map(({ item, error }) => element("p", { class: "error" }, bdi(item), ": ", error)),
      element(
        "div",
        { class: "side-by-side" },
        known.length ? table(`Cosines in ${model.data.name}`, headings, cells, "matrix") : null,
        element("div", { class: "vectors" }, vectors),
      ),
    );
  });
  return [...head, columns(await Promise.all(sections))];
}

/** Create a table cell with the cosine of two vectors, coloured by its value. */
function cosineCell(one, other) {
  const product = (a, b) => a.values.reduce((sum, value, i) => sum + value * b.values[i], 0);
  const divisor = Math.sqrt(product(one, one) * product(other, other));
  const cosine = one === other ? 1 : divisor && product(one, other) / divisor;
  const cell = element("td", { class: "heat" }, cosine.toFixed(2));
  cell.style.setProperty("--share", Math.abs(cosine));
  return cell;
}
