/** A text field that lists words as one types: the ARIA pattern "editable combobox with list autocomplete". */

import { bdi, element } from "./parts.js";
import { grouped } from "./words.js";

const SHOWN = 8;

/** Make `input` complete words by `complete(text, n)`. `chosen(word)` is called when one is taken from the list. */
export function combobox(input, complete, chosen) {
  const list = element("ul", {
    role: "listbox",
    id: `${input.id}-list`,
    "aria-label": "Words",
    class: "options",
    hidden: true,
  });
  input.after(list);
  for (const [name, value] of Object.entries({
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": list.id,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
  })) {
    input.setAttribute(name, value);
  }
  let words = [];
  let active = -1;
  let asked = 0; // answers to earlier questions are dropped

  function close() {
    asked++;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    activate(-1);
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
    list.replaceChildren(
      ...found.map(({ word, count }, i) =>
        element(
          "li",
          { role: "option", id: `${list.id}-${i}`, "aria-selected": "false", pointerdown: (event) => take(event, i) },
          bdi(word),
          count === undefined || count === null ? "" : element("span", {}, grouped(count)),
        ),
      ),
    );
    list.hidden = !words.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    activate(-1);
  }

  function take(event, index) {
    event.preventDefault(); // the field keeps the focus, and its form is not sent
    input.value = words[index];
    close();
    chosen?.(words[index]);
  }

  input.addEventListener("input", () => open().catch(close));
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && list.hidden) open().catch(close);
    else if (step) activate(active < 0 && step < 0 ? words.length - 1 : (active + step + words.length) % words.length);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter" && active >= 0) return take(event, active);
    else if (event.key === "Enter") return close();
    else return;
    event.preventDefault();
  });
}
