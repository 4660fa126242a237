/** A word map on a canvas, with zooming, panning and selecting, and a table of the words in view. */

import { bdi, element, table } from "./parts.js";
import { current, link, replace, toggle } from "./state.js";
import { displayText, formatNumber } from "./words.js";

const MAX_COORDINATE = 32767;
const CELL = 6; // pixels: the size of the grid cells that a label can occupy
const LABEL_HEIGHT = 15; // pixels
const LABEL_GAP = 6; // pixels after a label
const HOVER_DISTANCE = 14; // pixels between the pointer and a word under it
const PATH_RADIUS = 4; // pixels, of the rings on the path of a word
const MAX_AUTO_ZOOM = 20; // the highest zoom that the page chooses itself, to show a word and its neighbours
const [MIN_ZOOM, MAX_ZOOM] = [0.5, 400];
const ZOOM_STEP = 1.6; // of a button or key
const PAN_STEP = 60; // pixels, of a key
const DRAG_DISTANCE = 4; // pixels: a shorter movement of the pointer is a click
const MAX_TABLE_ROWS = 100;
const SETTLE_DELAY = 250; // milliseconds without movement before the link and the table are updated

const clamp = (low, value, high) => Math.min(high, Math.max(low, value));
const clampZoom = (zoom) => clamp(MIN_ZOOM, zoom, MAX_ZOOM);

/** Let maps with the same axes move together, and show the way of a word from map to map. */
export function linkMaps(maps) {
  const home = viewOf(maps.flatMap((each) => each.initialPoints()));
  for (const each of maps) Object.assign(each, { linked: maps, home, view: home });
}

/** Return the view that contains some points. */
function viewOf(points) {
  const range = (values) => [Math.min(...values), Math.max(...values)];
  const [left, right] = range(points.map(({ x }) => x));
  const [low, high] = range(points.map(({ y }) => y));
  const radius = Math.max(right - left, high - low) / 2;
  return { x: (left + right) / 2, y: (low + high) / 2, zoom: clampZoom(1 / (radius || 1)) };
}

export class WordMap {
  /** Create a map. Its view is number `index` in the link. Call `onMove` when a new centre and zoom are in the link. */
  constructor(data, name, index, onMove) {
    this.data = data;
    this.index = index;
    this.onMove = onMove;
    this.rows = new Map(data.words.map((word, row) => [word, row]));
    this.labelWidths = new Map();
    this.view = this.home = viewOf(this.initialPoints());
    this.linked = [this]; // the maps that move with this one, and this one
    this.marks = { selected: [], word: null, near: [] };
    this.pointers = new Map();
    this.build(name);
    this.width = this.height = 1; // size of the canvas in pixels, stored because reading it from the canvas is slow
    new ResizeObserver(() => {
      [this.width, this.height] = [this.canvas.clientWidth, this.canvas.clientHeight];
      this.requestDraw();
      this.updateTable();
    }).observe(this.canvas);
    document.addEventListener("themechange", () => this.requestDraw());
  }

  build(name) {
    this.canvas = element("canvas", {
      tabindex: "0",
      role: "application",
      "aria-roledescription": "map",
      "aria-label": `Map of ${formatNumber(this.data.words.length)} words of ${name}. Arrow keys move it, + and - zoom, 0 shows the first view. The table below lists the words in view.`,
      keydown: (event) => this.onKeyDown(event),
      wheel: (event) => this.onWheel(event),
      pointerdown: (event) => this.onPointerDown(event),
      pointermove: (event) => this.onPointerMove(event),
      pointerup: (event) => this.onPointerUp(event),
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
    const label = "Clusters, named after their central words";
    const clusters = this.data.names.map((words, cluster) => element("li", this.dots[cluster], bdi(words)));
    this.tableArea = element("div");
    const summary = element("summary", "Words in view as a table");
    this.details = element("details", { toggle: () => this.updateTable() }, summary, this.tableArea);
    this.element = element(
      "div",
      { class: "map" },
      element("div", { class: "frame" }, this.canvas, buttons, this.tip),
      element("ul", { class: "legend", "aria-label": label }, clusters),
      this.details,
    );
  }

  /** Show a state, but do not move a map that the user is moving.
   *
   *  `view` is "x,y,zoom" or undefined. Without a view, `zoomIn` shows the current word and its neighbours. `marks` has
   *  `selected` (the selected words), `word` (the current word) and `near` (its neighbours). */
  show(view, zoomIn) {
    const [x, y, zoom] = (view ?? "").split(",").map(Number);
    const initial = (zoomIn && this.viewOfMarks()) || this.home;
    const isValid = view && [x, y, zoom].every(Number.isFinite);
    if (!this.linked.some(({ timer }) => timer)) this.view = isValid ? { x, y, zoom: clampZoom(zoom) } : initial;
    this.requestDraw();
    this.updateTable();
  }

  /** Return the coordinates of a word, -1 to 1. */
  point(row) {
    return { x: this.data.points[2 * row] / MAX_COORDINATE, y: this.data.points[2 * row + 1] / MAX_COORDINATE };
  }

  /** Return the coordinates of the words that the map shows at first. */
  initialPoints() {
    const { words, skipped, shown } = this.data;
    return words.slice(skipped, skipped + shown).map((_, i) => this.point(skipped + i));
  }

  /** Return the coordinates of the known ones of some words. */
  points(words) {
    return this.knownRows(words).map((row) => this.point(row));
  }

  /** Return the current word's coordinates in each of the linked maps that has it. */
  path() {
    return this.linked.flatMap((each) => each.points([each.marks.word]));
  }

  /** Return the view that has the current word in its centre and contains the word's neighbours, in all linked maps.
   *  Return null if no map has the word. */
  viewOfMarks() {
    const path = this.path();
    if (!path.length) return null;
    const { x, y } = viewOf(path);
    const points = [...path, ...this.linked.flatMap((each) => each.points(each.marks.near))];
    const distances = points.flatMap((point) => [Math.abs(point.x - x), Math.abs(point.y - y)]);
    return { x, y, zoom: 1 / Math.max(1 / MAX_AUTO_ZOOM, ...distances) };
  }

  get scale() {
    return 0.46 * this.view.zoom * Math.min(this.width, this.height);
  }

  /** Return the position of a word on the canvas, in pixels. */
  pixel(row) {
    return this.pixelOf(this.point(row));
  }

  pixelOf({ x, y }) {
    return [(x - this.view.x) * this.scale + this.width / 2, (this.view.y - y) * this.scale + this.height / 2];
  }

  /** Return the rows of the words that are on the map. */
  knownRows(words) {
    return words.map((word) => this.rows.get(word)).filter((row) => row !== undefined);
  }

  /** Return the rows in view, the most frequent first.
   *
   *  The higher the zoom, the more words are shown. The most frequent words are skipped until the zoom is high enough
   *  to show all others. */
  rowsInView() {
    const { words, skipped, shown } = this.data;
    const [maxX, maxY] = [this.width / 2 / this.scale, this.height / 2 / this.scale];
    const count = shown * Math.max(1, this.view.zoom / this.home.zoom) ** 2;
    const start = count >= words.length ? 0 : skipped;
    const marked = new Set(this.knownRows([this.marks.word, ...this.marks.selected, ...this.marks.near]));
    const rows = [];
    for (let row = 0; row < words.length; row++) {
      if ((row < start || row >= start + count) && !marked.has(row)) continue;
      const { x, y } = this.point(row);
      if (Math.abs(x - this.view.x) <= maxX && Math.abs(y - this.view.y) <= maxY) rows.push(row);
    }
    return rows;
  }

  // -- drawing --------------------------------------------------------------------------------

  requestDraw() {
    this.drawRequest ??= requestAnimationFrame(() => {
      this.drawRequest = null;
      this.draw();
    });
  }

  draw() {
    const { canvas } = this;
    if (this.width * this.height <= 1) return; // the canvas is not visible
    [canvas.width, canvas.height] = [this.width * devicePixelRatio, this.height * devicePixelRatio];
    const context = canvas.getContext("2d");
    context.scale(devicePixelRatio, devicePixelRatio);
    context.textBaseline = "middle";
    context.lineJoin = "round";
    // Drawing commands cannot use CSS variables, so the style sheet passes these in properties that a canvas ignores.
    const { color, caretColor: muted, fontFamily, backgroundColor: halo } = getComputedStyle(canvas);
    const colours = this.dots.map((dot) => getComputedStyle(dot).backgroundColor);
    const rows = this.rowsInView();
    const selected = new Set(this.knownRows([this.marks.word, ...this.marks.selected]));
    const near = this.knownRows(this.marks.near);
    const dot = (row, border, colour = colours[this.data.clusters[row]]) => {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(...this.pixel(row), this.radius(row) + border, 0, 2 * Math.PI);
      context.fill();
    };

    context.globalAlpha = 0.7;
    for (const row of rows) dot(row, 0);
    context.globalAlpha = 1;
    for (const centre of this.knownRows([this.marks.word])) {
      context.strokeStyle = color;
      context.beginPath();
      for (const row of near) {
        context.moveTo(...this.pixel(centre));
        context.lineTo(...this.pixel(row));
      }
      context.stroke();
    }
    this.drawPath(context, color);
    for (const row of [...near, ...selected]) {
      dot(row, 2.5, color);
      dot(row, 1);
    }

    const occupied = new Set(); // grid cells that are covered by labels
    const inView = new Set(rows);
    context.strokeStyle = halo;
    context.lineWidth = 3;
    const label = (row, font, style) => {
      context.font = `${font} 13px ${fontFamily}`;
      context.fillStyle = style;
      this.drawLabel(context, occupied, row, font);
    };
    for (const row of [...selected, ...near]) if (inView.has(row)) label(row, "bold", color);
    for (const row of rows) label(row, "normal", muted);
  }

  /** Draw the way of the current word through the linked maps: a dashed line, with a ring where it is in each. */
  drawPath(context, colour) {
    const path = this.path().map((point) => this.pixelOf(point));
    if (path.length < 2) return;
    context.strokeStyle = colour;
    context.setLineDash([5, 4]);
    context.beginPath();
    for (const place of path) context.lineTo(...place);
    context.stroke();
    context.setLineDash([]);
    for (const place of path) {
      context.beginPath();
      context.arc(...place, PATH_RADIUS, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  radius(row) {
    const share = 1 - Math.log1p(row) / Math.log1p(this.data.words.length); // 1 for the most frequent word
    return (1.5 + 3 * share) * Math.min(1, this.width / 700);
  }

  /** Draw a word next to its dot, unless other labels are there. Bold words may be on any side of the dot. */
  drawLabel(context, occupied, row, font) {
    const isFree = (x, y, width) => cellsUnder(x, y, width).every((cell) => !occupied.has(cell));
    const [dotX, dotY] = this.pixel(row);
    const labelY = clamp(LABEL_HEIGHT / 2, dotY, this.height - LABEL_HEIGHT / 2); // inside the canvas
    const right = dotX + this.radius(row) + 4;
    if (font !== "bold" && !isFree(right, labelY, 1)) return;
    const text = displayText(this.data.words[row], 24);
    const key = font + row;
    if (!this.labelWidths.has(key)) this.labelWidths.set(key, context.measureText(text).width);
    const width = this.labelWidths.get(key) + LABEL_GAP;
    const left = dotX - this.radius(row) - 4 - width;
    const above = [dotX - width / 2, labelY - LABEL_HEIGHT];
    const below = [dotX - width / 2, labelY + LABEL_HEIGHT];
    const positions = [[right, labelY], [left, labelY], ...(font === "bold" ? [above, below] : [])];
    const visible = positions.filter(([x]) => x >= 0 && x + width <= this.width);
    const position = (font === "bold" ? visible : visible.slice(0, 1)).find(([x, y]) => isFree(x, y, width));
    if (!position) return;
    const [x, y] = position;
    for (const cell of cellsUnder(x, y, width)) occupied.add(cell);
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }

  // -- moving ---------------------------------------------------------------------------------

  moveTo({ x, y, zoom }) {
    const view = { x: clamp(-1.5, x, 1.5), y: clamp(-1.5, y, 1.5), zoom: clampZoom(zoom) };
    for (const each of this.linked) {
      each.view = view;
      each.requestDraw();
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settle(), SETTLE_DELAY);
    this.element.setAttribute("aria-busy", "true"); // until the table is updated
  }

  /** Cancel the update of the link that follows a movement. */
  cancelSettle() {
    clearTimeout(this.timer);
    this.timer = null;
    this.element.removeAttribute("aria-busy");
  }

  /** Update the link and the table after a movement. */
  settle() {
    this.cancelSettle();
    for (const each of this.linked) each.updateTable();
    const { x, y, zoom } = this.view;
    const { mapViews } = current();
    const views = Array.from({ length: Math.max(mapViews.length, this.index + 1) }, (_, i) => mapViews[i] ?? "");
    replace({ mapViews: views.with(this.index, `${x.toFixed(4)},${y.toFixed(4)},${zoom.toFixed(2)}`) });
    this.onMove();
  }

  /** Select or unselect a word. */
  select(word) {
    this.linked.find(({ timer }) => timer)?.settle(); // selecting renders the view in the link, which must be up to date
    toggle(word);
  }

  panBy(right, down) {
    this.moveTo({ ...this.view, x: this.view.x + right / this.scale, y: this.view.y - down / this.scale });
  }

  /** Zoom and keep the point fixed that is `right` and `down` pixels from the centre of the canvas. */
  zoomBy(factor, right = 0, down = 0) {
    const zoom = clampZoom(this.view.zoom * factor);
    const shift = (1 - this.view.zoom / zoom) / this.scale; // of the centre, for each pixel
    this.moveTo({ x: this.view.x + right * shift, y: this.view.y - down * shift, zoom });
  }

  onKeyDown(event) {
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

  onWheel(event) {
    event.preventDefault();
    this.zoomBy(Math.exp(clamp(-0.3, -event.deltaY / 300, 0.3)), ...this.fromCentre(event));
  }

  fromCentre({ offsetX, offsetY }) {
    return [offsetX - this.width / 2, offsetY - this.height / 2];
  }

  onPointerDown(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event);
    this.travelled = this.pointers.size > 1 ? Infinity : 0; // two fingers never click
    this.hover(null);
  }

  onPointerMove(event) {
    const previous = this.pointers.get(event.pointerId);
    if (!previous) return this.hover(this.rowAt(event));
    const [right, down] = [event.offsetX - previous.offsetX, event.offsetY - previous.offsetY];
    this.travelled += Math.hypot(right, down);
    const other = [...this.pointers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    this.pointers.set(event.pointerId, event);
    if (this.travelled < DRAG_DISTANCE) return undefined;
    if (!other) return this.panBy(-right, -down);
    const distance = (pointer) => Math.hypot(pointer.offsetX - other.offsetX, pointer.offsetY - other.offsetY) || 1;
    return this.zoomBy(distance(event) / distance(previous), ...this.fromCentre(other));
  }

  onPointerUp(event) {
    this.pointers.delete(event.pointerId);
    const row = this.travelled < DRAG_DISTANCE ? this.rowAt(event) : null;
    if (row !== null) this.select(this.data.words[row]);
  }

  /** Return the row of the word at the pointer, or null. */
  rowAt({ offsetX, offsetY }) {
    let [nearest, shortest] = [null, HOVER_DISTANCE];
    for (const row of this.rowsInView()) {
      const [x, y] = this.pixel(row);
      const distance = Math.hypot(x - offsetX, y - offsetY);
      if (distance < shortest) [nearest, shortest] = [row, distance];
    }
    return nearest;
  }

  hover(row) {
    this.tip.hidden = row === null;
    this.canvas.classList.toggle("on-word", row !== null);
    if (row === null) return;
    const [x, y] = this.pixel(row);
    const count = this.data.counts ? `, ${formatNumber(this.data.counts[row])} times` : "";
    this.tip.replaceChildren(bdi(this.data.words[row]), ` – rank ${formatNumber(row + 1)}${count}`);
    this.tip.style.left = `${Math.min(x + 10, Math.max(0, this.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${y > 40 ? y - 36 : y + 12}px`;
  }

  // -- the table ------------------------------------------------------------------------------

  updateTable() {
    this.tableArea.replaceChildren(); // even if it is folded, so that opening it never shows an outdated table
    if (!this.details.open) return;
    const rows = this.rowsInView();
    const cells = rows.slice(0, MAX_TABLE_ROWS).map((row) => {
      const word = this.data.words[row];
      const selected = this.marks.selected.includes(word);
      const { x, y } = this.point(row);
      const attributes = {
        type: "button",
        "aria-pressed": String(selected),
        "aria-label": `Select ${displayText(word)}`,
        click: () => this.select(word),
      };
      return [
        element("a", { href: link({ view: "neighbours", word }) }, bdi(word)),
        formatNumber(row + 1),
        this.data.counts ? formatNumber(this.data.counts[row]) : "",
        `${x.toFixed(2)}, ${y.toFixed(2)}`,
        element("button", attributes, selected ? "Selected" : "Select"),
      ];
    });
    const limit = rows.length > MAX_TABLE_ROWS ? `; the ${MAX_TABLE_ROWS} most frequent` : "";
    const caption = `${formatNumber(rows.length)} words in view${limit}`;
    const wordTable = table(caption, ["word", "rank", "count", "position", "selected"], cells, "numbers");
    this.tableArea.replaceChildren(element("p", caption), wordTable);
  }
}

/** Return the numbers of the grid cells that a label covers: 100,000 times the row plus the column. */
function cellsUnder(x, y, width) {
  const cells = [];
  const [top, bottom] = [y - LABEL_HEIGHT / 2, y + LABEL_HEIGHT / 2].map((edge) => Math.floor(edge / CELL));
  for (let row = top; row <= bottom; row++) {
    for (let column = Math.floor(x / CELL); column <= Math.floor((x + width) / CELL); column++) {
      cells.push(1e5 * row + column);
    }
  }
  return cells;
}
