/** A model that is embedded in the page, with its words, counts and 8-bit vectors. */

import { completions, fold, formatNumber } from "./words.js";

const EPSILON = 1e-6; // added to the divisor in 3CosMul, to keep the quotient finite

function decodeBase64(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes.buffer;
}

/** Decode the data of a map. `points` are the coordinates x, y, x, y, … of the words, `clusters` their clusters. */
export const decodeMap = (data) => ({
  ...data,
  points: new Int16Array(decodeBase64(data.map)),
  clusters: new Uint8Array(decodeBase64(data.clusters)),
});

export class EmbeddedModel {
  constructor(data) {
    this.data = data;
    this.vectors = new Int8Array(decodeBase64(data.vectors)); // all rows; scales[row] is the factor of each
    this.scales = new Float32Array(decodeBase64(data.scales));
    this.rows = new Map(data.words.map((word, row) => [word, row]));
    this.folded = data.words.map(fold);
    this.lengths = this.scales.map((_, row) => length(this.integers(row)) || 1); // zeros get 1, so that their cosines are 0
  }

  integers(row) {
    return this.vectors.subarray(row * this.data.dimensions, (row + 1) * this.data.dimensions);
  }

  /** Return the row of a word. Throw an Error if the page does not have it. */
  row(word) {
    if (this.rows.has(word)) return this.rows.get(word);
    const { words, size, has_ngrams: hasNgrams } = this.data;
    const unknown =
      words.length < size ? `not among the first ${formatNumber(words.length)} words` : "not in the vocabulary";
    throw new Error(hasNgrams ? `${unknown}; w2v explore without -o computes its vector from its n-grams` : unknown);
  }

  wordData(row, score) {
    return { word: this.data.words[row], count: this.data.counts?.[row], score };
  }

  async complete(typed, topn) {
    const exact = this.rows.has(typed) ? [this.rows.get(typed)] : [];
    const rows = new Set([...exact, ...completions(this.folded, typed, topn)]);
    return [...rows].slice(0, topn).map((row) => this.wordData(row));
  }

  /** Return the topn words nearest to plus - minus, by the method "add" (3CosAdd) or "mul" (3CosMul). Words with equal
   *  scores are in the order of the vocabulary. */
  async nearest(plus, minus, method, topn) {
    const [plusRows, minusRows] = [plus, minus].map((words) => words.map((word) => this.row(word)));
    const scores =
      method === "mul" ? this.quotients(plusRows, minusRows) : this.cosines(this.direction(plusRows, minusRows));
    const others = [...scores.keys()].filter((row) => !plusRows.includes(row) && !minusRows.includes(row));
    const best = others.sort((a, b) => scores[b] - scores[a]).slice(0, topn);
    return best.map((row) => this.wordData(row, scores[row]));
  }

  async vector(word) {
    const row = this.row(word);
    const values = Array.from(this.integers(row), (value) => value * this.scales[row]);
    return { row, count: this.data.counts?.[row], values };
  }

  async map() {
    return decodeMap(this.data);
  }

  /** Return the unit vector in the direction of a sum of unit vectors, where `minusRows` are subtracted. */
  direction(plusRows, minusRows) {
    const sum = new Float64Array(this.data.dimensions);
    const add = (row, sign) => this.integers(row).forEach((value, i) => (sum[i] += (sign * value) / this.lengths[row]));
    for (const row of plusRows) add(row, 1);
    for (const row of minusRows) add(row, -1);
    const divisor = length(sum) || 1;
    return sum.map((value) => value / divisor);
  }

  /** Return the cosine of a unit vector with each word. */
  cosines(direction) {
    const { vectors, lengths } = this;
    const cosines = new Float64Array(lengths.length);
    for (let row = 0, offset = 0; row < cosines.length; row++) {
      let sum = 0;
      for (let i = 0; i < direction.length; i++) sum += direction[i] * vectors[offset++];
      cosines[row] = sum / lengths[row];
    }
    return cosines;
  }

  /** Return each word's score by 3CosMul: the product of its cosines with `plusRows`, shifted to 0…1, divided by the
   *  product of its cosines with `minusRows`. */
  quotients(plusRows, minusRows) {
    const [dividends, divisors] = [plusRows, minusRows].map((rows) => {
      const products = new Float64Array(this.lengths.length).fill(1);
      for (const row of rows) {
        this.cosines(this.direction([row], [])).forEach((cosine, i) => (products[i] *= (1 + cosine) / 2));
      }
      return products;
    });
    return dividends.map((dividend, i) => dividend / (divisors[i] + EPSILON));
  }
}

const length = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
