/** Elements that several views share. All text from models goes through `element`, which never parses it as HTML. */

import { isLatest } from "./state.js";
import { displayText, formatNumber } from "./words.js";

/** Create an element with children, which are nodes or text. A first argument that is an object gives attributes:
 *  functions become event listeners, and null or false leaves an attribute out. */
export const element = (name, ...children) => fill(document.createElement(name), children);

const SVG = "http://www.w3.org/2000/svg";
const svgElement = (name, ...children) => fill(document.createElementNS(SVG, name), children);

function fill(node, children) {
  if (children[0]?.constructor === Object) setAttributes(node, children.shift());
  node.append(...children.flat(Infinity).filter((child) => child !== null));
  return node;
}

export function setAttributes(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
}

/** Create an element for a word that isolates its writing direction from the text around it. */
export const bdi = (word) =>
  element("bdi", { title: word.length > 80 ? displayText(word, 300) : null }, displayText(word) || "“”");

/** Announce to screen readers what the page shows, if `state` is still the latest state. */
export function announce(state, text) {
  if (isLatest(state)) document.getElementById("status").textContent = text;
}

/** Create a table with a caption for screen readers. Cells are nodes or text; the first column has the row headers. */
export function table(caption, headings, rows, kind) {
  const cell = (content, column) => {
    if (content instanceof HTMLTableCellElement) return content;
    return column ? element("td", content) : element("th", { scope: "row" }, content);
  };
  const head = headings.map((heading) => element("th", { scope: "col" }, heading));
  const body = rows.map((row) => element("tr", row.map(cell)));
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    element(
      "table",
      { class: kind },
      element("caption", { class: "hidden" }, caption),
      element("thead", element("tr", head)),
      element("tbody", body),
    ),
  );
}

/** Create a score with a bar. A bar of full length means 1, or `highest` if that is more. */
export function score(value, highest) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.inlineSize = `${Math.max(0, (100 * value) / Math.max(1, highest))}%`;
  const track = element("span", { class: "track" }, bar);
  return element("span", { class: "score" }, element("span", value.toFixed(3)), track);
}

/** Draw a vector as one bar per value, with a table of the values. */
export function bars(word, values) {
  const highest = values.reduce((maximum, value) => Math.max(maximum, Math.abs(value)), 0);
  const height = 50; // above and below the axis
  const rectangles = values.map((value, i) => {
    const size = highest ? (height * Math.abs(value)) / highest : 0;
    const name = svgElement("title", `${i + 1}: ${value.toPrecision(4)}`);
    return svgElement("rect", { x: 4 * i, width: 3, y: value > 0 ? -size : 0, height: size }, name);
  });
  const svg = svgElement(
    "svg",
    {
      viewBox: `0 ${-height} ${4 * values.length} ${2 * height}`,
      preserveAspectRatio: "none",
      class: "bars",
      role: "img",
      "aria-label": `${values.length} values between ${(-highest).toPrecision(3)} and ${highest.toPrecision(3)}`,
    },
    rectangles,
    svgElement("line", { x1: 0, x2: 4 * values.length, y1: 0, y2: 0 }),
  );
  const details = element("details", element("summary", "Values as a table"));
  const addTable = () => {
    const rows = values.map((value, i) => [formatNumber(i + 1), value.toPrecision(4)]);
    details.append(table(`Values of ${displayText(word)}`, ["dimension", "value"], rows, "numbers"));
  };
  details.addEventListener("toggle", addTable, { once: true });
  return element("div", svg, details);
}
