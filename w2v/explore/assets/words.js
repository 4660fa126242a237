/** Words as people type and read them. */

/** Upper case without accents: "koln" finds "Köln", "strasse" finds "Straße". The server folds in the same way. */
export const fold = (text) =>
  text
    .normalize("NFKD")
    .replace(/\p{Mn}/gu, "")
    .toUpperCase()
    .replaceAll("\n", " ");

/** Finds words by what is typed: whole words first, then beginnings, then parts, each in the order of the vocabulary. */
export class Completer {
  constructor(words) {
    const folded = words.map(fold);
    this.text = `\n${folded.join("\n")}\n`;
    this.starts = new Int32Array(words.length + 1); // of the line break before each word, and of the last
    folded.forEach((word, row) => (this.starts[row + 1] = this.starts[row] + word.length + 1));
  }

  /** The rows of at most n words. */
  rows(typed, n) {
    const wanted = fold(typed);
    const found = new Set();
    const end = this.starts.at(-1);
    for (const pattern of [`\n${wanted}\n`, `\n${wanted}`, wanted]) {
      let at = this.text.indexOf(pattern);
      while (at >= 0 && at < end && found.size < n) {
        const row = this.rowAt(at);
        found.add(row);
        at = this.text.indexOf(pattern, this.starts[row + 1]);
      }
    }
    return [...found];
  }

  rowAt(place) {
    let [low, high] = [0, this.starts.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.starts[middle] <= place) low = middle;
      else high = middle;
    }
    return low;
  }
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
