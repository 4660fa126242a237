/** A model whose words, counts and 8-bit vectors are in the page. */

import { Completer, grouped } from "./words.js";

const EPSILON = 1e-6; // added to the divisor in 3CosMul, to keep the quotient finite

export function bytes(base64) {
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
    this.completer = new Completer(data.words);
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
    return [...new Set([...exact, ...this.completer.rows(typed, n)])].slice(0, n).map((row) => this.word(row));
  }

  /** The n words nearest to plus - minus, by the method "add" (3CosAdd) or "mul" (3CosMul). */
  async nearest(plus, minus, method, n) {
    const [near, far] = [plus, minus].map((words) => words.map((word) => this.row(word)));
    const scores = method === "mul" ? this.products(near, far) : this.cosines(this.sum(near, far));
    return best(scores, new Set([...near, ...far]), n).map((row) => this.word(row, scores[row]));
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
    for (const [rows, sign] of [
      [near, 1],
      [far, -1],
    ]) {
      for (const row of rows) this.integers(row).forEach((value, i) => (sum[i] += (sign * value) / this.lengths[row]));
    }
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

  products(near, far) {
    const found = new Float64Array(this.lengths.length).fill(1);
    for (const row of near) this.cosines(this.sum([row], [])).forEach((cosine, i) => (found[i] *= (1 + cosine) / 2));
    const divisors = new Float64Array(this.lengths.length).fill(1);
    for (const row of far) this.cosines(this.sum([row], [])).forEach((cosine, i) => (divisors[i] *= (1 + cosine) / 2));
    return found.map((product, i) => product / (divisors[i] + EPSILON));
  }
}

const length = (values) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));

/** The rows of the n highest scores, highest first; equal scores are in the order of the vocabulary. */
function best(scores, skipped, n) {
  const rows = [];
  for (let row = 0; row < scores.length; row++) {
    if (skipped.has(row) || (rows.length === n && scores[row] <= scores[rows[n - 1]])) continue;
    let at = rows.length;
    while (at > 0 && scores[rows[at - 1]] < scores[row]) at--;
    rows.splice(at, 0, row);
    if (rows.length > n) rows.pop();
  }
  return rows;
}
