// What the browser keeps for this page, as JSON under names that begin with "coppice.". It may keep nothing (switched off, full):
// then everything goes on in memory, and `lasting` is false.

const kPrefix = 'coppice.';

export class BrowserStorage {
  lasting = true;
  #memory = new Map();
  #store = null;

  constructor(open = () => window.localStorage) {
    try {
      this.#store = open();
      this.#store.setItem(`${kPrefix}test`, '1');
      this.#store.removeItem(`${kPrefix}test`);
    } catch {
      this.lasting = false;
    }
  }

  get(name, otherwise = null) {
    if (this.#memory.has(name)) return JSON.parse(this.#memory.get(name));
    try {
      return JSON.parse(this.#store?.getItem(kPrefix + name) ?? 'null') ?? otherwise;
    } catch {
      return otherwise;  // written by something else
    }
  }

  // Whether it will last.
  set(name, value) {
    const text = JSON.stringify(value);
    try {
      this.#store.setItem(kPrefix + name, text);
      this.#memory.delete(name);
      return true;
    } catch {
      this.#memory.set(name, text);
      return false;
    }
  }

  remove(name) {
    this.#memory.delete(name);
    try {
      this.#store.removeItem(kPrefix + name);
    } catch {
      // It was not kept.
    }
  }

  names(prefix) {
    const kept = [];
    for (let i = 0; i < (this.#store?.length ?? 0); i++) kept.push(this.#store.key(i));
    const own = kept.filter((name) => name.startsWith(kPrefix)).map((name) => name.slice(kPrefix.length));
    return [...new Set([...own, ...this.#memory.keys()])].filter((name) => name.startsWith(prefix));
  }
}
