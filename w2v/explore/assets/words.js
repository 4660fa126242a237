/** Words as people type and read them. */

/** Upper case without accents: "koln" finds "Köln", "strasse" finds "Straße". The server folds in the same way. */
export const fold = (text) =>
  text
    .normalize("NFKD")
    .replace(/\p{Mn}/gu, "")
    .toUpperCase()
    .replaceAll("\n", " ");

/** The rows of at most n folded words by what is typed: whole words first, then beginnings, then parts, each in the
 *  order of the vocabulary. */
export function completions(folded, typed, n) {
  const wanted = fold(typed);
  const kinds = [(word) => word === wanted, (word) => word.startsWith(wanted), (word) => word.includes(wanted)];
  const found = new Set();
  for (const fits of kinds) {
    for (let row = 0; row < folded.length && found.size < n; row++) if (fits(folded[row])) found.add(row);
  }
  return [...found];
}

/** A word with control characters escaped, cut to `length` characters. */
export function shown(word, length = 80) {
  const characters = [...word.slice(0, 4 * length)];
  const cut = characters.length > length ? `${characters.slice(0, length).join("")}…` : word;
  return cut.replace(
    /[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** 1234567 as 1,234,567. */
export const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
