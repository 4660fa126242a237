/** A model whose words, counts and 8-bit vectors are in the page. */

import { completions, fold, grouped } from "./words.js";

const EPSILON = 1e-6; // added to the divisor in 3CosMul, to keep the quotient finite

function bytes(base64) {
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found.buffer;
}

/** The map of words: those of the model, or the most frequent of them, with the coordinates x, y, x, y, … */
export const decodedMap = (data) => ({
  ...data,
  points: new Int16Array(bytes(data.map)),
  clusters: new Uint8Array(bytes(data.clusters)),
});

export class EmbeddedModel {
  constructor(data) {
    this.data = data;
    this.vectors = new Int8Array(bytes(data.vectors)); // row i stands for vectors[i] * scales[i]
    this.scales = new Float32Array(bytes(data.scales));
    this.rows = new Map(data.words.map((word, row) => [word, row]));
    this.folded = data.words.map(fold);
    this.lengths = this.scales.map((_, row) => length(this.integers(row)) || 1); // 1 for zeros, whose cosines are 0
  }

  integers(row) {
    return this.vectors.subarray(row * this.data.dimensions, (row + 1) * this.data.dimensions);
  }

  row(word) {
    if (this.rows.has(word)) return this.rows.get(word);
    const { words, size, composes } = this.data;
    const unknown = words.length < size ? `not among the first ${grouped(words.length)} words` : "not in the vocabulary";
    throw new Error(composes ? `${unknown}; w2v explore without -o computes its vector from its n-grams` : unknown);
  }

  word(row, score) {
    return { word: this.data.words[row], count: this.data.counts?.[row], score };
  }

  async complete(typed, n) {
    const exact = this.rows.has(typed) ? [this.rows.get(typed)] : [];
    const rows = new Set([...exact, ...completions(this.folded, typed, n)]);
    return [...rows].slice(0, n).map((row) => this.word(row));
  }

  /** The n words nearest to plus - minus, by the method "add" (3CosAdd) or "mul" (3CosMul). Equal ones are in the order
   *  of the vocabulary. */
  async nearest(plus, minus, method, n) {
    const [near, far] = [plus, minus].map((words) => words.map((word) => this.row(word)));
    const scores = method === "mul" ? this.quotients(near, far) : this.cosines(this.sum(near, far));
    const others = [...scores.keys()].filter((row) => !near.includes(row) && !far.includes(row));
    const best = others.sort((one, other) => scores[other] - scores[one]).slice(0, n);
    return best.map((row) => this.word(row, scores[row]));
  }

  async vector(word) {
    const row = this.row(word);
    const values = Array.from(this.integers(row), (value) => value * this.scales[row]);
    return { row, count: this.data.counts?.[row], values };
  }

  async map() {
    return decodedMap(this.data);
  }

  /** The direction of a sum of unit vectors. */
  sum(near, far) {
    const sum = new Float64Array(this.data.dimensions);
    const add = (row, sign) => this.integers(row).forEach((value, i) => (sum[i] += (sign * value) / this.lengths[row]));
    for (const row of near) add(row, 1);
    for (const row of far) add(row, -1);
    const divisor = length(sum) || 1;
    return sum.map((value) => value / divisor);
  }

  /** The cosine of a unit vector with each word. */
  cosines(direction) {
    const { vectors, lengths } = this;
    const found = new Float64Array(lengths.length);
    for (let row = 0, at = 0; row < found.length; row++) {
      let sum = 0;
      for (let i = 0; i < direction.length; i++) sum += direction[i] * vectors[at++];
      found[row] = sum / lengths[row];
    }
    return found;
  }

  /** The product of the cosines with `near`, shifted to 0…1, by that of those with `far`. */
  quotients(near, far) {
    const [dividends, divisors] = [near, far].map((rows) => {
      const found = new Float64Array(this.lengths.length).fill(1);
      for (const row of rows) this.cosines(this.sum([row], [])).forEach((cosine, i) => (found[i] *= (1 + cosine) / 2));
      return found;
    });
    return dividends.map((dividend, i) => dividend / (divisors[i] + EPSILON));
  }
}

const length = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
