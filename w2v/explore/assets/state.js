/** What the page shows, as the part of its address after #: so every view has a link, and "back" works. */

export const VIEWS = { neighbours: "Neighbours", analogy: "Analogy", map: "Map", compare: "Compare" };
export const NUMBERS = [10, 20, 50, 100];

/** The state that the address names:
 *  view, n (results), word, plus and minus (of an analogy), list (of selected words), at (centre and zoom of each map). */
export function current() {
  const found = new URLSearchParams(location.hash.slice(1));
  const [view, n] = [found.get("view"), Number(found.get("n"))];
  return {
    view: Object.hasOwn(VIEWS, view) ? view : "map",
    n: NUMBERS.includes(n) ? n : NUMBERS[0],
    word: found.get("word"),
    plus: found.getAll("plus"),
    minus: found.getAll("minus"),
    list: [...new Set(found.getAll("list"))],
    at: found.getAll("at"),
  };
}

let latest; // what is found for an earlier state is dropped

/** The state that the page shows from now on. */
export const toShow = () => (latest = current());

export const isLatest = (state) => state === latest;

/** The address, after #, of the state with some changes. */
export function link(changes) {
  const next = { ...current(), ...changes };
  const pairs = [["view", next.view]];
  if (next.n !== NUMBERS[0]) pairs.push(["n", next.n]);
  if (next.word !== null) pairs.push(["word", next.word]);
  for (const name of ["plus", "minus", "list", "at"]) pairs.push(...next[name].map((value) => [name, value]));
  return `#${new URLSearchParams(pairs)}`;
}

/** Relative addresses would not do: within a notebook they are relative to its page. */
const absolute = (hash) => location.href.split("#")[0] + hash;

const assign = (hash) => location.assign(absolute(hash));

export const change = (changes) => assign(link(changes));

let wishes = 0; // of the user for a view: one whose answer is late gives way to a newer one

/** Follow a link of the page. */
export function follow(hash) {
  wishes++;
  assign(hash);
}

/** Change the state by what a promise gives. */
export async function changeLater(promised) {
  const own = ++wishes;
  const changes = await promised;
  if (own === wishes) change(changes);
}

/** Change the state without a new entry in the history, and without `hashchange`. */
export const replace = (changes) => history.replaceState(null, "", absolute(link(changes)));

/** Select or unselect a word. */
export function toggle(word) {
  const { list } = current();
  change({ list: list.includes(word) ? list.filter((other) => other !== word) : [...list, word] });
}
