/** What the page shows, as the part of its address after #: so every view has a link, and "back" works. */

export const VIEWS = { neighbours: "Neighbours", analogy: "Analogy", map: "Map", compare: "Compare" };
export const NUMBERS = [10, 20, 50, 100];

/** The state that an address names:
 *  view, n (results), word, plus and minus (of an analogy), list (of selected words), at (centre and zoom of each map). */
export function parse(hash) {
  const found = new URLSearchParams(hash.slice(1));
  return {
    view: Object.hasOwn(VIEWS, found.get("view")) ? found.get("view") : "map",
    n: NUMBERS.includes(Number(found.get("n"))) ? Number(found.get("n")) : NUMBERS[0],
    word: found.get("word"),
    plus: found.getAll("plus"),
    minus: found.getAll("minus"),
    list: [...new Set(found.getAll("list"))],
    at: found.getAll("at"),
  };
}

/** The address of a state with some changes. */
export function link(state, changes = {}) {
  const next = { ...state, ...changes };
  const pairs = [["view", next.view]];
  if (next.n !== NUMBERS[0]) pairs.push(["n", next.n]);
  if (next.word !== null) pairs.push(["word", next.word]);
  for (const name of ["plus", "minus", "list", "at"]) pairs.push(...next[name].map((value) => [name, value]));
  return `#${new URLSearchParams(pairs)}`;
}

/** Go to an address after #. Relative addresses would not do: within a notebook they are relative to its page. */
export function go(hash, { replace = false } = {}) {
  const address = location.href.split("#")[0] + hash;
  if (replace) history.replaceState(null, "", address);
  else location.assign(address);
}
