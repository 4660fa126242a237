/** A text field that lists words as one types: the ARIA pattern "editable combobox with list autocomplete". */

import { bdi, element, setAttributes } from "./parts.js";
import { grouped } from "./words.js";

const SHOWN = 8;

/** Make `input` complete words by `complete(text, n)`. `chosen` is called when one is taken from the list. */
export function combobox(input, complete, chosen = () => {}) {
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
    keydown: keyPressed,
  });
  let words = [];
  let active = -1;
  let asked = 0; // answers to earlier questions are dropped
  show(false);

  function show(visible) {
    list.hidden = !visible;
    input.setAttribute("aria-expanded", String(visible));
    activate(-1);
  }

  function close() {
    asked++;
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
    const question = ++asked;
    const found = input.value ? await complete(input.value, SHOWN) : [];
    if (question !== asked) return;
    words = found.map(({ word }) => word);
    const options = found.map(({ word, count }, i) => {
      const attributes = { role: "option", id: `${id}-${i}`, pointerdown: (event) => take(event, i) };
      return element("li", attributes, bdi(word), Number.isInteger(count) ? element("span", grouped(count)) : "");
    });
    list.replaceChildren(...options);
    show(words.length > 0);
  }

  function take(event, index) {
    event.preventDefault(); // the field keeps the focus, and its form is not sent
    input.value = words[index];
    close();
    chosen();
  }

  function keyPressed(event) {
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
