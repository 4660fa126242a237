/** Match typed text with words, and format words and numbers. */

/** Return text in upper case without accents: "koln" and "Köln" become the same. explorer.py does the same. */
export const fold = (text) =>
  text
    .normalize("NFKD")
    .replace(/\p{Mn}/gu, "")
    .toUpperCase()
    .replaceAll("\n", " ");

/** Return the rows of at most topn folded words that match the typed text: equal words, then words that begin with
 *  it, then words that contain it, each in the order of the vocabulary. */
export function completions(folded, typed, topn) {
  const text = fold(typed);
  const matchers = [(word) => word === text, (word) => word.startsWith(text), (word) => word.includes(text)];
  const rows = new Set();
  for (const matches of matchers) {
    for (let row = 0; row < folded.length && rows.size < topn; row++) if (matches(folded[row])) rows.add(row);
  }
  return [...rows];
}

/** Return a word with control characters escaped, shortened to `length` characters. */
export function displayText(word, length = 80) {
  const characters = [...word.slice(0, 4 * length)];
  const cut = characters.length > length ? `${characters.slice(0, length).join("")}…` : word;
  return cut.replace(
    /[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Format a number with commas: 1,234,567. */
export const formatNumber = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
