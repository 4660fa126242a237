/** A map of words on a canvas: zoom, pan, hover, select; and a table of the words in view. */

import { bdi, element, table } from "./parts.js";
import { grouped, shown } from "./words.js";

const MAX_COORDINATE = 32767;
const CELL = 6; // pixels: the grain in which labels keep apart
const LINE = 15; // pixels: the height of a label
const GAP = 6; // pixels after a label
const REACH = 14; // pixels from the pointer within which a word is found
const CLOSE = 20; // the highest zoom at which the page itself shows a word and its neighbours
const ZOOMS = [0.5, 400];
const LISTED = 100; // words in the table
const PAUSE = 250; // milliseconds without movement after which the link is renewed

export class WordMap {
  /** `moved(at)` is called with a new centre and zoom, `toggled(word)` to select or unselect a word. */
  constructor(data, name, { moved, toggled, linked }) {
    this.data = data;
    this.moved = moved;
    this.toggled = toggled;
    this.linked = linked;
    this.rows = new Map(data.words.map((word, row) => [word, row]));
    this.widths = new Map(); // of labels
    this.view = this.home = this.opening();
    this.marks = { list: [], word: null, near: [] };
    this.pointers = new Map();
    this.build(name);
    this.width = this.height = 1; // of the canvas, in pixels; reading it from the canvas is slow
    new ResizeObserver(() => {
      [this.width, this.height] = [this.canvas.clientWidth, this.canvas.clientHeight];
      this.redraw();
      this.list();
    }).observe(this.canvas);
    document.addEventListener("themechange", () => this.redraw());
  }

  build(name) {
    this.canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map",
      "aria-label": `Map of ${grouped(this.data.words.length)} words of ${name}. Arrow keys move it, + and - zoom, 0 shows the first view. The words in view are in the table below.`,
      keydown: (event) => this.keyPressed(event),
      wheel: (event) => this.wheelTurned(event),
      pointerdown: (event) => this.pointerDown(event),
      pointermove: (event) => this.pointerMoved(event),
      pointerup: (event) => this.pointerUp(event),
      pointercancel: (event) => this.pointers.delete(event.pointerId),
      pointerleave: () => this.hover(null),
    });
    this.legend = element(
      "ul",
      { class: "legend", "aria-label": "Clusters, each named after the words in its middle" },
      this.data.names.map((name, cluster) => element("li", {}, element("i", { class: `c${cluster}` }), bdi(name))),
    );
    this.tip = element("div", { class: "tip", "aria-hidden": "true", hidden: true });
    const button = (text, label, click) =>
      element("button", { type: "button", "aria-label": label, title: label, click }, text);
    const buttons = element(
      "div",
      { class: "zoom" },
      button("+", "Zoom in", () => this.zoomBy(1.6)),
      button("−", "Zoom out", () => this.zoomBy(1 / 1.6)),
      button("⤢", "First view", () => this.moveTo(this.home)),
    );
    this.details = element(
      "details",
      { toggle: () => this.list() },
      element("summary", {}, "Words in view as a table"),
    );
    this.element = element(
      "div",
      { class: "map" },
      element("div", { class: "frame" }, this.canvas, buttons, this.tip),
      this.legend,
      this.details,
    );
  }

  /** Show a state: `at` is "x,y,zoom" or undefined; `near` are the neighbours of `word`, which is shown if `close`. */
  show(at, marks, close) {
    this.marks = marks;
    const [x, y, zoom] = (at ?? "").split(",").map(Number);
    const row = this.rows.get(marks.word);
    if (at && [x, y, zoom].every(Number.isFinite)) this.view = { x, y, zoom: clamp(zoom) };
    else if (close && row !== undefined) this.view = this.around(row, marks.near);
    else this.view = this.home;
    this.redraw();
    this.list();
  }

  place(row) {
    return { x: this.data.points[2 * row] / MAX_COORDINATE, y: this.data.points[2 * row + 1] / MAX_COORDINATE };
  }

  /** The view of the words with which the map opens. */
  opening() {
    const { words, skipped, shown } = this.data;
    const places = words.slice(skipped, skipped + shown).map((_, i) => this.place(skipped + i));
    const [across, up] = ["x", "y"].map((axis) => {
      const values = places.map((place) => place[axis]);
      return [Math.min(...values), Math.max(...values)];
    });
    const reach = Math.max(across[1] - across[0], up[1] - up[0]) / 2;
    const middle = ([low, high]) => (low + high) / 2;
    return { x: middle(across), y: middle(up), zoom: clamp(1 / (reach || 1)) };
  }

  /** The view of a row in the middle that has its neighbours in it. */
  around(row, near) {
    const middle = this.place(row);
    let distance = 1 / CLOSE;
    for (const other of near) {
      const { x, y } = this.rows.has(other) ? this.place(this.rows.get(other)) : middle;
      distance = Math.max(distance, Math.abs(x - middle.x), Math.abs(y - middle.y));
    }
    return { ...middle, zoom: 1 / distance };
  }

  get scale() {
    return 0.46 * this.view.zoom * Math.min(this.width, this.height);
  }

  /** Where on the canvas a word is, in pixels. */
  pixel(row) {
    const { x, y } = this.place(row);
    return [(x - this.view.x) * this.scale + this.width / 2, (this.view.y - y) * this.scale + this.height / 2];
  }

  /** The rows of these words that are on the map. */
  known(words) {
    return words.map((word) => this.rows.get(word)).filter((row) => row !== undefined);
  }

  /** The rows in view, most frequent first. At first the most frequent words of all are left out, like rare ones. */
  inView() {
    const { words, skipped, shown } = this.data;
    const reach = [this.width / 2 / this.scale, this.height / 2 / this.scale];
    const end = shown * Math.max(1, this.view.zoom / this.home.zoom) ** 2;
    const start = end >= words.length ? 0 : skipped;
    const marked = new Set(this.known([this.marks.word, ...this.marks.list, ...this.marks.near]));
    const found = [];
    for (let row = 0; row < words.length; row++) {
      if ((row < start || row >= start + end) && !marked.has(row)) continue;
      const { x, y } = this.place(row);
      if (Math.abs(x - this.view.x) <= reach[0] && Math.abs(y - this.view.y) <= reach[1]) found.push(row);
    }
    return found;
  }

  // -- drawing --------------------------------------------------------------------------------

  redraw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.draw();
    });
  }

  draw() {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    if (this.width * this.height <= 1) return; // not shown
    [canvas.width, canvas.height] = [this.width * ratio, this.height * ratio];
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.textBaseline = "middle";
    // A canvas cannot use variables of the style sheet: it gets them through properties that have no effect on it.
    const {
      color,
      caretColor: muted,
      fontFamily,
      backgroundColor: panel,
    } = getComputedStyle(canvas);
    const colours = [...this.legend.querySelectorAll("i")].map((one) => getComputedStyle(one).backgroundColor);
    const rows = this.inView();
    const chosen = new Set(this.known([this.marks.word, ...this.marks.list]));
    const near = this.known(this.marks.near);

    context.globalAlpha = 0.7;
    for (const row of rows) {
      context.fillStyle = colours[this.data.clusters[row]];
      this.dot(context, row, this.radius(row));
    }
    context.globalAlpha = 1;
    const centre = this.rows.get(this.marks.word);
    if (centre !== undefined) {
      context.strokeStyle = color;
      context.beginPath();
      for (const row of near) {
        context.moveTo(...this.pixel(centre));
        context.lineTo(...this.pixel(row));
      }
      context.stroke();
    }
    for (const row of [...near, ...chosen]) {
      context.fillStyle = color;
      this.dot(context, row, this.radius(row) + 2.5);
      context.fillStyle = colours[this.data.clusters[row]];
      this.dot(context, row, this.radius(row) + 1);
    }

    const taken = new Taken(this.width, this.height);
    const inside = new Set(rows);
    const label = (row, font, style) => {
      context.font = `${font} 13px ${fontFamily}`;
      context.fillStyle = style;
      this.label(context, taken, row, panel, font);
    };
    for (const row of chosen) if (inside.has(row)) label(row, "bold", color);
    for (const row of near) if (inside.has(row)) label(row, "bold", color);
    for (const row of rows) label(row, "normal", muted);
  }

  radius(row) {
    const share = 1 - Math.log1p(row) / Math.log1p(this.data.words.length); // 1 for the most frequent word
    return (1.5 + 3 * share) * Math.min(1, this.width / 700);
  }

  dot(context, row, radius) {
    context.beginPath();
    context.arc(...this.pixel(row), radius, 0, 2 * Math.PI);
    context.fill();
  }

  /** Write a word beside its dot, if it is bold on any side, unless other labels are there. */
  label(context, taken, row, halo, font) {
    const [middle, height] = this.pixel(row);
    const level = Math.min(this.height - LINE / 2, Math.max(LINE / 2, height));
    const right = middle + this.radius(row) + 4;
    if (font !== "bold" && !taken.free(right, level, 1)) return;
    const text = shown(this.data.words[row], 24);
    const key = font + row;
    if (!this.widths.has(key)) this.widths.set(key, context.measureText(text).width);
    const width = this.widths.get(key) + GAP;
    const left = middle - this.radius(row) - 4 - width;
    const above = [middle - width / 2, level - LINE];
    const below = [middle - width / 2, level + LINE];
    const sides = [[right, level], [left, level], ...(font === "bold" ? [above, below] : [])];
    const inside = sides.filter(([x]) => x >= 0 && x + width <= this.width);
    const side = (font === "bold" ? inside : inside.slice(0, 1)).find(([x, y]) => taken.free(x, y, width));
    if (!side) return;
    const [x, y] = side;
    taken.take(x, y, width);
    context.strokeStyle = halo;
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
    context.lineWidth = 1;
  }

  // -- moving ---------------------------------------------------------------------------------

  moveTo(view) {
    const limit = (value) => Math.min(1.5, Math.max(-1.5, value));
    this.view = { x: limit(view.x), y: limit(view.y), zoom: clamp(view.zoom) };
    this.redraw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settle(), PAUSE);
  }

  /** Put a new view into the link and the table. */
  settle() {
    clearTimeout(this.timer);
    this.timer = null;
    this.list();
    const { x, y, zoom } = this.view;
    this.moved(`${x.toFixed(4)},${y.toFixed(4)},${zoom.toFixed(2)}`);
  }

  /** Select or unselect a word. */
  select(word) {
    if (this.timer) this.settle(); // the view would be lost: it is read from the link
    this.toggled(word);
  }

  panBy(right, down) {
    this.moveTo({ ...this.view, x: this.view.x + right / this.scale, y: this.view.y - down / this.scale });
  }

  /** Zoom so that the place at these pixels from the middle stays where it is. */
  zoomBy(factor, right = 0, down = 0) {
    const zoom = clamp(this.view.zoom * factor);
    const share = (1 - this.view.zoom / zoom) / this.scale;
    this.moveTo({ x: this.view.x + right * share, y: this.view.y - down * share, zoom });
  }

  keyPressed(event) {
    const step = 60;
    const action = {
      ArrowLeft: () => this.panBy(-step, 0),
      ArrowRight: () => this.panBy(step, 0),
      ArrowUp: () => this.panBy(0, -step),
      ArrowDown: () => this.panBy(0, step),
      "+": () => this.zoomBy(1.6),
      "=": () => this.zoomBy(1.6),
      "-": () => this.zoomBy(1 / 1.6),
      0: () => this.moveTo(this.home),
    }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  wheelTurned(event) {
    event.preventDefault();
    const [x, y] = this.fromMiddle(event);
    this.zoomBy(Math.exp(-Math.sign(event.deltaY) * Math.min(0.3, Math.abs(event.deltaY) / 300)), x, y);
  }

  fromMiddle({ offsetX, offsetY }) {
    return [offsetX - this.width / 2, offsetY - this.height / 2];
  }

  pointerDown(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event);
    this.travelled = this.pointers.size > 1 ? Infinity : 0;
    this.hover(null);
  }

  pointerMoved(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.hover(this.nearest(event));
    const [right, down] = [event.offsetX - before.offsetX, event.offsetY - before.offsetY];
    this.travelled += Math.hypot(right, down);
    const other = [...this.pointers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    this.pointers.set(event.pointerId, event);
    if (this.travelled < 4) return undefined;
    if (!other) return this.panBy(-right, -down);
    const distance = (one) => Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY) || 1;
    return this.zoomBy(distance(event) / distance(before), ...this.fromMiddle(other));
  }

  pointerUp(event) {
    this.pointers.delete(event.pointerId);
    const row = this.travelled < 4 ? this.nearest(event) : null;
    if (row !== null) this.select(this.data.words[row]);
  }

  /** The row of the word nearest to the pointer, or null. */
  nearest({ offsetX, offsetY }) {
    let [found, least] = [null, REACH];
    for (const row of this.inView()) {
      const [x, y] = this.pixel(row);
      const distance = Math.hypot(x - offsetX, y - offsetY);
      if (distance < least) [found, least] = [row, distance];
    }
    return found;
  }

  hover(row) {
    this.tip.hidden = row === null;
    this.canvas.classList.toggle("on-word", row !== null);
    if (row === null) return;
    const [x, y] = this.pixel(row);
    const count = this.data.counts ? `, ${grouped(this.data.counts[row])} times` : "";
    this.tip.replaceChildren(bdi(this.data.words[row]), ` – rank ${grouped(row + 1)}${count}`);
    this.tip.style.left = `${Math.min(x + 10, Math.max(0, this.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${y > 40 ? y - 36 : y + 12}px`;
  }

  // -- the table ------------------------------------------------------------------------------

  list() {
    if (!this.details.open) return;
    const rows = this.inView();
    const chosen = new Set(this.marks.list);
    const cells = rows.slice(0, LISTED).map((row) => {
      const word = this.data.words[row];
      const { x, y } = this.place(row);
      const toggle = element(
        "button",
        {
          type: "button",
          "aria-pressed": String(chosen.has(word)),
          "aria-label": `Select ${shown(word)}`,
          click: () => this.select(word),
        },
        chosen.has(word) ? "Selected" : "Select",
      );
      const place = `${x.toFixed(2)}, ${y.toFixed(2)}`;
      return [
        element("a", { href: this.linked(word) }, bdi(word)),
        grouped(row + 1),
        this.data.counts ? grouped(this.data.counts[row]) : "",
        place,
        toggle,
      ];
    });
    const caption = `${grouped(rows.length)} words in view${rows.length > LISTED ? `; the ${LISTED} most frequent` : ""}`;
    const made = [
      element("p", {}, caption),
      table(caption, ["word", "rank", "count", "place", "selected"], cells, "numbers"),
    ];
    this.details.replaceChildren(this.details.firstChild, ...made);
  }
}

const clamp = (zoom) => Math.min(ZOOMS[1], Math.max(ZOOMS[0], zoom));

/** The part of the canvas that labels cover, in cells. */
class Taken {
  constructor(width, height) {
    this.columns = Math.ceil(width / CELL) + 1;
    this.cells = new Uint8Array(this.columns * (Math.ceil(height / CELL) + 1));
  }

  *under(x, y, width) {
    const [left, right] = [x, x + width].map((value) =>
      Math.min(this.columns - 1, Math.max(0, Math.floor(value / CELL))),
    );
    for (let top = Math.floor((y - LINE / 2) / CELL); top <= Math.floor((y + LINE / 2) / CELL); top++) {
      for (let column = left; column <= right; column++) yield top * this.columns + column;
    }
  }

  free(x, y, width) {
    for (const cell of this.under(x, y, width)) if (this.cells[cell]) return false;
    return true;
  }

  take(x, y, width) {
    for (const cell of this.under(x, y, width)) this.cells[cell] = 1;
  }
}
