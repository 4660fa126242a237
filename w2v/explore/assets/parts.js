/** Parts that several views show. All text from models goes through `element`, which never reads it as HTML. */

import { isLatest } from "./state.js";
import { grouped, shown } from "./words.js";

/** An element with attributes, if an object is given first (null and false leave one out, functions are listeners), and
 *  children, which are nodes or text. */
export const element = (name, ...children) => filled(document.createElement(name), children);

const SVG = "http://www.w3.org/2000/svg";
const svgElement = (name, ...children) => filled(document.createElementNS(SVG, name), children);

function filled(made, children) {
  if (children[0]?.constructor === Object) setAttributes(made, children.shift());
  made.append(...children.flat(Infinity).filter((child) => child !== null));
  return made;
}

export function setAttributes(made, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
}

/** A word by itself, whatever its direction of writing. */
export const bdi = (word) => element("bdi", { title: word.length > 80 ? shown(word, 300) : null }, shown(word) || "“”");

/** Tell what a state shows to those who do not see it. */
export function announce(state, text) {
  if (isLatest(state)) document.getElementById("status").textContent = text;
}

/** A table with a caption for those who do not see it. Cells are nodes or text; the first column heads its row. */
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

/** A score with a bar: a full one is 1, or the highest score if that is more. */
export function score(value, highest) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.inlineSize = `${Math.max(0, (100 * value) / Math.max(1, highest))}%`;
  const track = element("span", { class: "track" }, bar);
  return element("span", { class: "score" }, element("span", value.toFixed(3)), track);
}

/** A vector as bars, one a value, with its values as a table. */
export function bars(word, values) {
  const highest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
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
  const fill = () => {
    const rows = values.map((value, i) => [grouped(i + 1), value.toPrecision(4)]);
    details.append(table(`Values of ${shown(word)}`, ["dimension", "value"], rows, "numbers"));
  };
  details.addEventListener("toggle", fill, { once: true });
  return element("div", svg, details);
}
