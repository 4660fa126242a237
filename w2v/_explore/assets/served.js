/** A model that the server searches, with the same methods as EmbeddedModel. */

import { decodeMap } from "./embedded.js";

export class ServedModel {
  constructor(data, index) {
    this.data = data;
    this.index = index;
  }

  async query(question, parameters) {
    const body = JSON.stringify({ question, model: this.index, ...parameters });
    const response = await fetch(location.pathname, { method: "POST", body }).catch(() => {
      throw new Error("the server has stopped: start w2v explore again");
    });
    if (!response.ok) throw new Error(await response.text());
    const { answer, error } = await response.json();
    if (error) throw new Error(error);
    return answer;
  }

  complete = (text, topn) => this.query("complete", { text, topn });

  nearest = (plus, minus, method, topn) => this.query("nearest", { plus, minus, method, topn });

  vector = (word) => this.query("vector", { word });

  map = async () => decodeMap(await this.query("map"));
}
