/** A model that the server of this page searches: the same methods as EmbeddedModel. */

import { decodedMap } from "./embedded.js";

export class ServedModel {
  constructor(data, index) {
    this.data = data;
    this.index = index;
  }

  async ask(question, more) {
    const body = JSON.stringify({ question, model: this.index, ...more });
    const response = await fetch(location.pathname, { method: "POST", body }).catch(() => {
      throw new Error("the server has ended: start w2v explore again");
    });
    if (!response.ok) throw new Error(await response.text());
    const { answer, error } = await response.json();
    if (error) throw new Error(error);
    return answer;
  }

  complete = (text, n) => this.ask("complete", { text, n });

  nearest = (plus, minus, method, n) => this.ask("nearest", { plus, minus, method, n });

  vector = (word) => this.ask("vector", { word });

  map = async () => decodedMap(await this.ask("map"));
}
