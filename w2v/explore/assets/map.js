/** A map of words on a canvas: zoom, pan, hover, select; and a table of the words in view. */

import { bdi, element, table } from "./parts.js";
import { current, link, replace, toggle } from "./state.js";
import { grouped, shown } from "./words.js";

const MAX_COORDINATE = 32767;
const CELL = 6; // pixels: the grain in which labels keep apart
const LINE = 15; // pixels: the height of a label
const GAP = 6; // pixels after a label
const REACH = 14; // pixels from the pointer within which a word is found
const CLOSE = 20; // the highest zoom at which the page itself shows a word and its neighbours
const ZOOMS = [0.5, 400];
const ZOOM_STEP = 1.6; // of a button or key
const PAN_STEP = 60; // pixels, of a key
const CLICK = 4; // pixels: a pointer that has travelled less is not dragging
const LISTED = 100; // words in the table
const PAUSE = 250; // milliseconds without movement after which the link is renewed

const between = (low, value, high) => Math.min(high, Math.max(low, value));
const clamp = (zoom) => between(ZOOMS[0], zoom, ZOOMS[1]);

export class WordMap {
  /** The map of the model `index`. `moved` is called when the link has another centre and zoom. */
  constructor(data, name, index, moved) {
    this.data = data;
    this.index = index;
    this.moved = moved;
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
    this.dots = this.data.names.map((_, cluster) => element("i", { class: `c${cluster}` }));
    this.tip = element("div", { class: "tip", "aria-hidden": "true", hidden: true });
    const button = (text, label, click) =>
      element("button", { type: "button", "aria-label": label, title: label, click }, text);
    const buttons = element(
      "div",
      { class: "zoom" },
      button("+", "Zoom in", () => this.zoomBy(ZOOM_STEP)),
      button("−", "Zoom out", () => this.zoomBy(1 / ZOOM_STEP)),
      button("⤢", "First view", () => this.moveTo(this.home)),
    );
    const label = "Clusters, each named after the words in its middle";
    const clusters = this.data.names.map((words, cluster) => element("li", this.dots[cluster], bdi(words)));
    this.listed = element("div");
    const summary = element("summary", "Words in view as a table");
    this.details = element("details", { toggle: () => this.list() }, summary, this.listed);
    this.element = element(
      "div",
      { class: "map" },
      element("div", { class: "frame" }, this.canvas, buttons, this.tip),
      element("ul", { class: "legend", "aria-label": label }, clusters),
      this.details,
    );
  }

  /** Show a state: `at` is "x,y,zoom" or undefined; `near` are the neighbours of `word`, which is shown if `close`. A map
   *  that is being moved stays where it is. */
  show(at, marks, close) {
    this.marks = marks;
    const [x, y, zoom] = (at ?? "").split(",").map(Number);
    const row = this.rows.get(marks.word);
    const opening = close && row !== undefined ? this.around(row, marks.near) : this.home;
    const view = at && [x, y, zoom].every(Number.isFinite) ? { x, y, zoom: clamp(zoom) } : opening;
    if (!this.timer) this.view = view;
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
    const range = (values) => [Math.min(...values), Math.max(...values)];
    const [left, right] = range(places.map(({ x }) => x));
    const [low, high] = range(places.map(({ y }) => y));
    const reach = Math.max(right - left, high - low) / 2;
    return { x: (left + right) / 2, y: (low + high) / 2, zoom: clamp(1 / (reach || 1)) };
  }

  /** The view of a row in the middle that has its neighbours in it. */
  around(row, near) {
    const middle = this.place(row);
    const places = this.known(near).map((other) => this.place(other));
    const distances = places.flatMap(({ x, y }) => [Math.abs(x - middle.x), Math.abs(y - middle.y)]);
    return { ...middle, zoom: 1 / Math.max(1 / CLOSE, ...distances) };
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
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.draw();
    });
  }

  draw() {
    const { canvas } = this;
    if (this.width * this.height <= 1) return; // not shown
    [canvas.width, canvas.height] = [this.width * devicePixelRatio, this.height * devicePixelRatio];
    const context = canvas.getContext("2d");
    context.scale(devicePixelRatio, devicePixelRatio);
    context.textBaseline = "middle";
    context.lineJoin = "round";
    // A canvas cannot use variables of the style sheet: it gets them through properties that have no effect on it.
    const { color, caretColor: muted, fontFamily, backgroundColor: halo } = getComputedStyle(canvas);
    const colours = this.dots.map((dot) => getComputedStyle(dot).backgroundColor);
    const rows = this.inView();
    const chosen = new Set(this.known([this.marks.word, ...this.marks.list]));
    const near = this.known(this.marks.near);
    const dot = (row, more, colour = colours[this.data.clusters[row]]) => {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(...this.pixel(row), this.radius(row) + more, 0, 2 * Math.PI);
      context.fill();
    };

    context.globalAlpha = 0.7;
    for (const row of rows) dot(row, 0);
    context.globalAlpha = 1;
    for (const centre of this.known([this.marks.word])) {
      context.strokeStyle = color;
      context.beginPath();
      for (const row of near) {
        context.moveTo(...this.pixel(centre));
        context.lineTo(...this.pixel(row));
      }
      context.stroke();
    }
    for (const row of [...near, ...chosen]) {
      dot(row, 2.5, color);
      dot(row, 1);
    }

    const taken = new Set(); // cells
    const inside = new Set(rows);
    context.strokeStyle = halo;
    context.lineWidth = 3;
    const label = (row, font, style) => {
      context.font = `${font} 13px ${fontFamily}`;
      context.fillStyle = style;
      this.label(context, taken, row, font);
    };
    for (const row of [...chosen, ...near]) if (inside.has(row)) label(row, "bold", color);
    for (const row of rows) label(row, "normal", muted);
  }

  radius(row) {
    const share = 1 - Math.log1p(row) / Math.log1p(this.data.words.length); // 1 for the most frequent word
    return (1.5 + 3 * share) * Math.min(1, this.width / 700);
  }

  /** Write a word beside its dot, if it is bold on any side, unless other labels are there. */
  label(context, taken, row, font) {
    const free = (x, y, width) => cellsUnder(x, y, width).every((cell) => !taken.has(cell));
    const [middle, height] = this.pixel(row);
    const level = between(LINE / 2, height, this.height - LINE / 2);
    const right = middle + this.radius(row) + 4;
    if (font !== "bold" && !free(right, level, 1)) return;
    const text = shown(this.data.words[row], 24);
    const key = font + row;
    if (!this.widths.has(key)) this.widths.set(key, context.measureText(text).width);
    const width = this.widths.get(key) + GAP;
    const left = middle - this.radius(row) - 4 - width;
    const above = [middle - width / 2, level - LINE];
    const below = [middle - width / 2, level + LINE];
    const sides = [[right, level], [left, level], ...(font === "bold" ? [above, below] : [])];
    const inside = sides.filter(([x]) => x >= 0 && x + width <= this.width);
    const side = (font === "bold" ? inside : inside.slice(0, 1)).find(([x, y]) => free(x, y, width));
    if (!side) return;
    const [x, y] = side;
    for (const cell of cellsUnder(x, y, width)) taken.add(cell);
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }

  // -- moving ---------------------------------------------------------------------------------

  moveTo({ x, y, zoom }) {
    this.view = { x: between(-1.5, x, 1.5), y: between(-1.5, y, 1.5), zoom: clamp(zoom) };
    this.redraw();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settle(), PAUSE);
    this.element.setAttribute("aria-busy", "true"); // the table follows later
  }

  /** Whatever has moved is not put into the link any more. */
  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.element.removeAttribute("aria-busy");
  }

  /** Put a new view into the link and the table. */
  settle() {
    this.stop();
    this.list();
    const { x, y, zoom } = this.view;
    const { at } = current();
    const places = Array.from({ length: Math.max(at.length, this.index + 1) }, (_, i) => at[i] ?? "");
    replace({ at: places.with(this.index, `${x.toFixed(4)},${y.toFixed(4)},${zoom.toFixed(2)}`) });
    this.moved();
  }

  /** Select or unselect a word. */
  select(word) {
    if (this.timer) this.settle(); // the view would be lost: it is read from the link
    toggle(word);
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
    const action = {
      ArrowLeft: () => this.panBy(-PAN_STEP, 0),
      ArrowRight: () => this.panBy(PAN_STEP, 0),
      ArrowUp: () => this.panBy(0, -PAN_STEP),
      ArrowDown: () => this.panBy(0, PAN_STEP),
      "+": () => this.zoomBy(ZOOM_STEP),
      "=": () => this.zoomBy(ZOOM_STEP),
      "-": () => this.zoomBy(1 / ZOOM_STEP),
      0: () => this.moveTo(this.home),
    }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  wheelTurned(event) {
    event.preventDefault();
    this.zoomBy(Math.exp(between(-0.3, -event.deltaY / 300, 0.3)), ...this.fromMiddle(event));
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
    if (this.travelled < CLICK) return undefined;
    if (!other) return this.panBy(-right, -down);
    const distance = (one) => Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY) || 1;
    return this.zoomBy(distance(event) / distance(before), ...this.fromMiddle(other));
  }

  pointerUp(event) {
    this.pointers.delete(event.pointerId);
    const row = this.travelled < CLICK ? this.nearest(event) : null;
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
    this.listed.replaceChildren(); // so that no earlier view is seen when it opens
    if (!this.details.open) return;
    const rows = this.inView();
    const cells = rows.slice(0, LISTED).map((row) => {
      const word = this.data.words[row];
      const selected = this.marks.list.includes(word);
      const { x, y } = this.place(row);
      const attributes = {
        type: "button",
        "aria-pressed": String(selected),
        "aria-label": `Select ${shown(word)}`,
        click: () => this.select(word),
      };
      return [
        element("a", { href: link({ view: "neighbours", word }) }, bdi(word)),
        grouped(row + 1),
        this.data.counts ? grouped(this.data.counts[row]) : "",
        `${x.toFixed(2)}, ${y.toFixed(2)}`,
        element("button", attributes, selected ? "Selected" : "Select"),
      ];
    });
    const caption = `${grouped(rows.length)} words in view${rows.length > LISTED ? `; the ${LISTED} most frequent` : ""}`;
    const made = table(caption, ["word", "rank", "count", "place", "selected"], cells, "numbers");
    this.listed.replaceChildren(element("p", caption), made);
  }
}

/** The numbers of the cells of the canvas that a label covers; rows of cells are far apart. */
function cellsUnder(x, y, width) {
  const found = [];
  for (let row = Math.floor((y - LINE / 2) / CELL); row <= Math.floor((y + LINE / 2) / CELL); row++) {
    for (let column = Math.floor(x / CELL); column <= Math.floor((x + width) / CELL); column++) {
      found.push(1e5 * row + column);
    }
  }
  return found;
}
