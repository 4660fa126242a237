/** A text field that suggests words as the user types: the ARIA pattern "editable combobox with list autocomplete". */

import { bdi, element, setAttributes } from "./parts.js";
import { formatNumber } from "./words.js";

const MAX_OPTIONS = 8;

/** Let `input` suggest the words that `complete(text, topn)` returns. Call `onChoose` when the user takes one. */
export function combobox(input, complete, onChoose = () => {}) {
  const id = `${input.id}-list`;
  const list = element("ul", { role: "listbox", id, "aria-label": "Words", class: "options" });
  input.after(list);
  setAttributes(input, {
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-controls": id,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    input: () => open().catch(close),
    blur: close,
    keydown: onKeyDown,
  });
  let words = [];
  let active = -1;
  let latestRequest = 0; // answers to earlier requests are dropped
  show(false);

  function show(visible) {
    list.hidden = !visible;
    input.setAttribute("aria-expanded", String(visible));
    activate(-1);
  }

  function close() {
    latestRequest++;
    show(false);
  }

  function activate(index) {
    active = index;
    [...list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === index)));
    if (index < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", list.children[index].id);
      list.children[index].scrollIntoView({ block: "nearest" });
    }
  }

  async function open() {
    const request = ++latestRequest;
    const completions = input.value ? await complete(input.value, MAX_OPTIONS) : [];
    if (request !== latestRequest) return;
    words = completions.map(({ word }) => word);
    const options = completions.map(({ word, count }, i) => {
      const attributes = { role: "option", id: `${id}-${i}`, pointerdown: (event) => take(event, i) };
      return element("li", attributes, bdi(word), Number.isInteger(count) ? element("span", formatNumber(count)) : "");
    });
    list.replaceChildren(...options);
    show(words.length > 0);
  }

  function take(event, index) {
    event.preventDefault(); // keeps the focus in the field, and does not submit its form
    input.value = words[index];
    close();
    onChoose();
  }

  function onKeyDown(event) {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.hidden) open().catch(close);
    else if (step) activate(active < 0 && step < 0 ? words.length - 1 : (active + step + words.length) % words.length);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" && active >= 0) return take(event, active);
    else if (event.key === "Enter") return close();
    else return;
    event.preventDefault();
  }
}
