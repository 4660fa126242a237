/** Parts that several views show. All text from models goes through `element`, which never reads it as HTML. */

import { grouped, shown } from "./words.js";

/** An element with attributes (null and false leave one out) and children, which are nodes or text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  setAttributes(made, attributes);
  made.append(...children.flat(Infinity).filter((child) => child !== null));
  return made;
}

function setAttributes(made, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
}

/** A word by itself, whatever its direction of writing. */
export const bdi = (word) => element("bdi", { title: word.length > 80 ? shown(word, 300) : null }, shown(word) || "“”");

export const announce = (text) => (document.getElementById("status").textContent = text);

/** A table with a caption for those who do not see it. Cells are nodes or text; the first column heads its row. */
export function table(caption, headings, rows, kind = "") {
  const cells = (row) =>
    row.map((cell, i) =>
      cell instanceof HTMLTableCellElement ? cell : element(i ? "td" : "th", i ? {} : { scope: "row" }, cell),
    );
  return element(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    element(
      "table",
      { class: kind },
      element("caption", { class: "hidden" }, caption),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          headings.map((heading) => element("th", { scope: "col" }, heading)),
        ),
      ),
      element(
        "tbody",
        {},
        rows.map((row) => element("tr", {}, cells(row))),
      ),
    ),
  );
}

/** A score with a bar: a full one is 1, or the highest score if that is more. */
export function score(value, highest) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.inlineSize = `${Math.max(0, (100 * value) / Math.max(1, highest))}%`;
  return element(
    "span",
    { class: "score" },
    element("span", {}, value.toFixed(3)),
    element("span", { class: "track" }, bar),
  );
}

/** A vector as bars, one a value, with its values as a table. */
export function bars(word, values) {
  const highest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const height = 50; // above and below the axis
  const svg = svgElement("svg", {
    viewBox: `0 ${-height} ${4 * values.length} ${2 * height}`,
    preserveAspectRatio: "none",
    class: "bars",
    role: "img",
    "aria-label": `${values.length} values between ${(-highest).toPrecision(3)} and ${highest.toPrecision(3)}`,
  });
  values.forEach((value, i) => {
    const size = highest ? (height * Math.abs(value)) / highest : 0;
    const rectangle = svgElement("rect", { x: 4 * i, width: 3, y: value > 0 ? -size : 0, height: size });
    rectangle.append(svgElement("title", {}, `${i + 1}: ${value.toPrecision(4)}`));
    svg.append(rectangle);
  });
  svg.append(svgElement("line", { x1: 0, x2: 4 * values.length, y1: 0, y2: 0 }));
  const details = element("details", {}, element("summary", {}, "Values as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) {
      const rows = values.map((value, i) => [grouped(i + 1), value.toPrecision(4)]);
      details.append(table(`Values of ${shown(word)}`, ["dimension", "value"], rows, "numbers"));
    }
  });
  return element("div", {}, svg, details);
}

function svgElement(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  setAttributes(made, attributes);
  made.append(...children);
  return made;
}
