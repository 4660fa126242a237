/** The views: each makes what `main` shows from a state and the models, or the examples before anything is asked. */

import { combobox } from "./combobox.js";
import { WordMap } from "./map.js";
import { announce, bars, bdi, element, score, table } from "./parts.js";
import { NUMBERS, go, link, parse } from "./state.js";
import { fold, grouped, shown } from "./words.js";

/** Words that complete what is typed in any of the models. */
export async function completeIn(models, typed, n) {
  const found = new Map();
  for (const words of await Promise.all(models.map((model) => model.complete(typed, n)))) {
    for (const one of words) if (!found.has(one.word)) found.set(one.word, one);
  }
  return [...found.values()].slice(0, n);
}

/** The word of a model that was typed, perhaps in another case or without its accents. */
export async function meant(models, typed) {
  const [first] = await completeIn(models, typed, 1);
  return first && fold(first.word) === fold(typed) ? first.word : typed;
}

export const toggled = (list, word) => (list.includes(word) ? list.filter((other) => other !== word) : [...list, word]);

// -- neighbours ---------------------------------------------------------------------------------

export async function neighbours(state, models, examples) {
  const { n } = state;
  const word = state.word ?? examples.word;
  if (word === null) return [title("Neighbours", TYPE_A_WORD)];
  const answers = await Promise.all(
    models.map((model) =>
      attempt(async () => {
        const [found, vector] = await Promise.all([model.nearest([word], [], "add", n), model.vector(word)]);
        return { found, vector };
      }),
    ),
  );
  const shared = sharedWords(answers.map(({ found }) => found));
  const sections = await Promise.all(
    models.map(async (model, i) => {
      const { found, vector, error } = answers[i];
      if (error) return card(model, await failure(error, word, state, models));
      const length = Math.sqrt(vector.values.reduce((sum, value) => sum + value * value, 0));
      const rank = isNumber(vector.row) ? `Rank ${grouped(vector.row + 1)}` : "Not in the vocabulary: made of its n-grams";
      const times = isNumber(vector.count) ? `, ${grouped(vector.count)} times in the text` : "";
      return card(
        model,
        element("p", { class: "facts" }, `${rank}${times}; vector length ${length.toPrecision(3)}`),
        element(
          "div",
          { class: "columns" },
          results(`Neighbours of ${shown(word)} in ${model.data.name}`, found, state, shared),
          element("div", {}, element("h4", {}, "Its vector"), bars(word, vector.values)),
        ),
      );
    }),
  );
  const head = title(["Neighbours of ", bdi(word)], state.word === null ? TYPE_A_WORD : "");
  const columns = element("div", { class: "columns" }, sections);
  if (answers.every(({ error }) => error)) return [head, columns];
  announce(`Neighbours of ${shown(word)}`);
  const selected = state.list.includes(word);
  return [
    head,
    element(
      "p",
      { class: "actions" },
      element(
        "button",
        {
          type: "button",
          "aria-pressed": String(selected),
          click: () => go(link(parse(location.hash), { list: toggled(state.list, word) })),
        },
        selected ? "Selected" : "Select",
      ),
      element("a", { class: "button", href: link(state, { view: "map", at: [] }) }, "Show on the map"),
      numberOfResults(state),
    ),
    sharedLine(shared, answers),
    columns,
  ];
}

const TYPE_A_WORD = "Type a word in the field above to see the words nearest to it.";

/** The heading of a view, with what there is to do. */
const title = (heading, text) =>
  element("div", { class: "title" }, element("h2", {}, heading), text ? element("p", {}, text) : null);

const wordLink = (state, word) => element("a", { href: link(state, { view: "neighbours", word }) }, bdi(word));

const isNumber = (value) => typeof value === "number";

/** What a promise gives, or { error }. */
async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    return { error: error.message };
  }
}

function card(model, ...children) {
  return element(
    "section",
    { class: "card", "aria-label": shown(model.data.name) },
    element("h3", {}, shown(model.data.name)),
    children,
  );
}

/** An error, with known words that have the same beginning as the unknown one. */
async function failure(error, typed, state, models) {
  let near = [];
  for (let length = Math.min(typed.length, 20); length > 0 && !near.length; length--) {
    near = await completeIn(models, typed.slice(0, length), 5);
  }
  const links = near.map(({ word }) => wordLink(state, word));
  announce(error);
  return element(
    "div",
    { class: "error" },
    element("p", {}, bdi(typed), ": ", error),
    links.length ? element("p", { class: "words" }, "Words with the same beginning: ", links) : null,
  );
}

/** The words in all of the answers; none if only one model answers. */
function sharedWords(answers) {
  if (answers.length < 2 || answers.includes(undefined)) return new Set();
  const [first, ...others] = answers.map((found) => new Set(found.map(({ word }) => word)));
  return new Set([...first].filter((word) => others.every((other) => other.has(word))));
}

function sharedLine(shared, answers) {
  if (answers.length < 2 || answers.some(({ found }) => !found)) return null;
  const total = Math.max(...answers.map(({ found }) => found.length));
  return element(
    "p",
    { class: "shared-line" },
    `${shared.size} of ${total} words are in both lists, marked `,
    sharedMark(),
  );
}

const sharedMark = () =>
  element(
    "span",
    { class: "shared", title: "in both models" },
    "●",
    element("span", { class: "hidden" }, " in both models"),
  );

function results(caption, found, state, shared = new Set()) {
  const counted = found.some(({ count }) => isNumber(count));
  const rows = found.map((one) => [
    element("span", {}, wordLink(state, one.word), shared.has(one.word) ? [" ", sharedMark()] : null),
    score(one.score, found[0].score),
    ...(counted ? [element("td", { class: "count" }, grouped(one.count))] : []),
  ]);
  if (!rows.length) return element("p", {}, "No other words.");
  return table(caption, ["word", "score", ...(counted ? ["count"] : [])], rows, "results");
}

function numberOfResults(state) {
  const change = (event) => go(link(parse(location.hash), { n: Number(event.target.value) }));
  const options = NUMBERS.map((number) => element("option", { selected: number === state.n }, String(number)));
  return element("label", {}, "Results ", element("select", { change }, options));
}

// -- analogy ------------------------------------------------------------------------------------

export async function analogy(state, models, examples) {
  const { n } = state;
  const [a, b, c] = examples.analogy;
  const isExample = state.plus.length + state.minus.length === 0 && a !== undefined;
  const { plus, minus } = isExample ? { plus: [a, c], minus: [b] } : state;
  const field = (id, label, value, placeholder) => [
    element("label", { class: "hidden", for: id }, label),
    element("input", { id, value, placeholder, required: true }),
  ];
  const form = element(
    "form",
    { class: "analogy", submit: solve },
    element("div", {}, field("analogy-a", "Word", plus[0] ?? "", "king")),
    element("span", {}, "−"),
    element("div", {}, field("analogy-b", "minus word", minus[0] ?? "", "man")),
    element("span", {}, "+"),
    element("div", {}, field("analogy-c", "plus word", plus[1] ?? "", "woman")),
    element("button", { class: "primary" }, "Solve"),
  );
  const inputs = [...form.querySelectorAll("input")];
  for (const input of inputs) combobox(input, (typed, most) => completeIn(models, typed, most));

  async function solve(event) {
    event.preventDefault();
    const [a, b, c] = await Promise.all(inputs.map((input) => meant(models, input.value)));
    go(link(parse(location.hash), { plus: [a, c], minus: [b] }));
  }

  const head = [
    title("Analogy", "Which word is to the third as the first is to the second?"),
    form,
  ];
  if (plus.length + minus.length === 0) return head;
  const formulas = [
    ["add", "3CosAdd", "cosine with the sum of unit vectors"],
    ["mul", "3CosMul", "product of cosines, shifted to 0…1"],
  ];
  const answers = await Promise.all(
    formulas.map(([method]) =>
      Promise.all(models.map((model) => attempt(async () => ({ found: await model.nearest(plus, minus, method, n) })))),
    ),
  );
  const sections = await Promise.all(
    models.map(async (model, i) => {
      if (answers[0][i].error) {
        const unknown = (
          await Promise.all([...plus, ...minus].map(async (word) => [word, await attempt(() => model.vector(word))]))
        ).find(([, { error }]) => error);
        return card(model, await failure(answers[0][i].error, unknown?.[0] ?? plus[0] ?? minus[0], state, models));
      }
      const tables = formulas.map(([, name, meaning], j) =>
        element(
          "div",
          {},
          element("h4", {}, name, " ", element("small", {}, meaning)),
          results(
            `${name} in ${model.data.name}`,
            answers[j][i].found,
            state,
            sharedWords(answers[j].map(({ found }) => found)),
          ),
        ),
      );
      return card(model, element("div", { class: "columns" }, tables));
    }),
  );
  const asked = plus
    .map((word, i) => [i ? " + " : "", bdi(word), i ? "" : minus.map((other) => [" − ", bdi(other)])])
    .flat(3);
  const best = answers[0].find(({ found }) => found?.length)?.found[0];
  if (best) announce(`${shown(best.word)} is nearest`);
  return [
    ...head,
    element(
      "p",
      { class: "actions" },
      element("span", { class: "equation" }, asked, " ≈ ", best ? element("strong", {}, bdi(best.word)) : "?"),
      numberOfResults(state),
    ),
    sharedLine(sharedWords(answers[0].map(({ found }) => found)), answers[0]),
    element("div", { class: models.length > 1 ? "columns" : "" }, sections),
  ];
}

// -- map ----------------------------------------------------------------------------------------

let made = null; // the maps and the elements of the view, made when it is first shown

export async function map(state, models, examples, moved) {
  made ??= makeMaps(models, moved);
  const { maps, lists, nodes } = await made;
  const word = state.word ?? examples.word;
  const near = async (model) => (word === null ? [] : model.nearest([word], [], "add", NUMBERS[0]).catch(() => []));
  const found = await Promise.all(models.map(near));
  maps.forEach((one, i) => {
    one.show(state.at[i], { list: state.list, word, near: found[i].map((each) => each.word) }, state.word !== null);
    lists[i].hidden = !found[i].length;
    lists[i].replaceChildren(
      element("h4", {}, "Neighbours of ", wordLink(state, word ?? "")),
      results(`Neighbours of ${shown(word ?? "")} in ${models[i].data.name}`, found[i], state),
    );
  });
  return nodes;
}

async function makeMaps(models, moved) {
  const maps = await Promise.all(models.map((model, i) => makeMap(model, i, moved)));
  const lists = models.map(() => element("div", {}));
  const cards = models.map((model, i) => card(model, element("div", { class: "beside" }, maps[i].element, lists[i])));
  const head = title("Map", "Scroll or pinch to see more words, drag to move, click a word to select it.");
  return { maps, lists, nodes: [head, element("div", { class: "columns" }, cards)] };
}

async function makeMap(model, index, moved) {
  return new WordMap(await model.map(), shown(model.data.name), {
    moved: (place) => {
      const state = parse(location.hash);
      const at = Array.from({ length: Math.max(state.at.length, index + 1) }, (_, i) => state.at[i] ?? "");
      moved({ ...state, at: at.with(index, place) });
    },
    toggled: (word) => {
      const state = parse(location.hash);
      go(link(state, { list: toggled(state.list, word) }));
    },
    linked: (word) => link(parse(location.hash), { view: "neighbours", word }),
  });
}

// -- compare ------------------------------------------------------------------------------------

let adding = null; // the form of the view: it stays while the view changes, with what is being typed

function addingForm(models) {
  const input = element("input", { id: "compare-word", placeholder: "Add a word", required: true });
  combobox(
    input,
    (typed, most) => completeIn(models, typed, most),
    () => form.requestSubmit(),
  );
  const form = element(
    "form",
    {
      class: "actions",
      submit: async (event) => {
        event.preventDefault();
        const typed = input.value;
        input.value = "";
        const word = await meant(models, typed);
        const now = parse(location.hash);
        if (!now.list.includes(word)) go(link(now, { list: [...now.list, word] }));
      },
    },
    element("div", {}, element("label", { class: "hidden", for: input.id }, "Add a word"), input),
    element("button", {}, "Add"),
  );
  return form;
}

export async function compare(state, models, examples) {
  adding ??= addingForm(models);
  const head = [
    title("Compare", "Add words here, or select them on the map: their cosines and their vectors."),
    adding,
  ];
  const example = [...examples.analogy, examples.word].filter((word) => word !== null);
  const list = state.list.length ? state.list : example;
  if (!list.length) return head;
  const sections = await Promise.all(
    models.map(async (model) => {
      const answers = await Promise.all(
        list.map(async (word) => ({ word, ...(await attempt(() => model.vector(word))) })),
      );
      const known = answers.filter(({ values }) => values);
      const failures = answers.filter(({ error }) => error);
      const cells = known.map((one) => [
        wordLink(state, one.word),
        ...known.map((other) => {
          const value = one === other ? 1 : cosine(one.values, other.values);
          const cell = element("td", { class: "heat" }, value.toFixed(2));
          cell.style.setProperty("--share", Math.abs(value));
          return cell;
        }),
      ]);
      return card(
        model,
        failures.map(({ word, error }) => element("p", { class: "error" }, bdi(word), ": ", error)),
        element(
          "div",
          { class: "beside" },
          known.length
            ? table(`Cosines in ${model.data.name}`, ["cosine", ...known.map(({ word }) => bdi(word))], cells, "matrix")
            : null,
          element(
            "div",
            { class: "vectors" },
            known.map(({ word, values }) => element("div", {}, element("h4", {}, bdi(word)), bars(word, values))),
          ),
        ),
      );
    }),
  );
  return [...head, element("div", { class: "columns" }, sections)];
}

function cosine(one, other) {
  const product = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const divisor = Math.sqrt(product(one, one) * product(other, other));
  return divisor ? product(one, other) / divisor : 0;
}
