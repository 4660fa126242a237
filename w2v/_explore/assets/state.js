/** The state of the page, stored in its address after #, so that every view has a link and the back button works. */

export const VIEWS = { neighbours: "Neighbours", analogy: "Analogy", map: "Map", compare: "Compare" };
export const RESULT_COUNTS = [10, 20, 50, 100];

/** Return the state that the address names: view, topn (the number of results), word, plus and minus (of an analogy),
 *  selected (words), mapViews ("x,y,zoom" of each map). In the address, the last two are called list and at. */
export function current() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  const [view, topn] = [parameters.get("view"), Number(parameters.get("topn"))];
  return {
    view: Object.hasOwn(VIEWS, view) ? view : "map",
    topn: RESULT_COUNTS.includes(topn) ? topn : RESULT_COUNTS[0],
    word: parameters.get("word"),
    plus: parameters.getAll("plus"),
    minus: parameters.getAll("minus"),
    selected: [...new Set(parameters.getAll("list"))],
    mapViews: parameters.getAll("at"),
  };
}

let latest; // the state of the latest rendering: results for earlier states are dropped

/** Begin to render the current state, and return it. */
export const beginRender = () => (latest = current());

export const isLatest = (state) => state === latest;

/** Return the address, from # on, of the current state with some changes. */
export function link(changes) {
  const next = { ...current(), ...changes };
  const pairs = [["view", next.view]];
  if (next.topn !== RESULT_COUNTS[0]) pairs.push(["topn", next.topn]);
  if (next.word !== null) pairs.push(["word", next.word]);
  const lists = { plus: next.plus, minus: next.minus, list: next.selected, at: next.mapViews };
  for (const [name, values] of Object.entries(lists)) pairs.push(...values.map((value) => [name, value]));
  return `#${new URLSearchParams(pairs)}`;
}

/** Return an absolute address: inside a notebook, a relative address would refer to the notebook's page. */
const absolute = (hash) => location.href.split("#")[0] + hash;

const assign = (hash) => location.assign(absolute(hash));

export const change = (changes) => assign(link(changes));

let navigations = 0; // the number of navigations by the user: a late answer must not undo a newer navigation

/** Follow a link of the page. */
export function follow(hash) {
  navigations++;
  assign(hash);
}

/** Apply the changes of a promise to the state, unless the user has navigated since. */
export async function changeLater(promise) {
  const navigation = ++navigations;
  const changes = await promise;
  if (navigation === navigations) change(changes);
}

/** Change the state without adding a history entry or firing `hashchange`. */
export const replace = (changes) => history.replaceState(null, "", absolute(link(changes)));

/** Select or unselect a word. */
export function toggle(word) {
  const { selected } = current();
  change({ selected: selected.includes(word) ? selected.filter((other) => other !== word) : [...selected, word] });
}
