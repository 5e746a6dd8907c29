// The sampler's and the tree's settings: one table, from which the form is made and requests are filled. To add one: a row.
import {element, h, make} from './dom.js';

const kPolicies = ['auto', 'fixed', 'adaptive-fitted', 'adaptive-paper'];

// kind range: [least, most, step]. `off` is the value at which a setting does nothing; then it is not sent, and is called `offName`.
const kSampler = [
  {name: 'temperature', label: 'Temperature', range: [0, 2, 0.05], first: 0, nameOf: {0: 'greedy'}},
  {name: 'top_p', label: 'Top-p', range: [0.05, 1, 0.01], first: 1, off: 1},
  {name: 'top_k', label: 'Top-k', range: [0, 200, 1], first: 0, off: 0},
  {name: 'min_p', label: 'Min-p', range: [0, 0.5, 0.01], first: 0, off: 0},
  {name: 'repetition_penalty', label: 'Repetition penalty', range: [1, 2, 0.05], first: 1, off: 1},
  {name: 'presence_penalty', label: 'Presence penalty', range: [-2, 2, 0.1], first: 0, off: 0},
  {name: 'frequency_penalty', label: 'Frequency penalty', range: [-2, 2, 0.1], first: 0, off: 0},
  {name: 'max_tokens', label: 'Most tokens', whole: [1, 1000000], first: 512},
  {name: 'seed', label: 'Seed', whole: [0, Number.MAX_SAFE_INTEGER], first: null, hint: 'empty: another one for each answer'},
];
const kBudget = [
  {name: 'nodes', label: 'Guesses in a pass, at most', range: [0, 64, 1], first: 16, nameOf: {0: 'none: plain'}},
  {name: 'depth', label: 'How far ahead', range: [1, 32, 1], first: 16},
  {name: 'width', label: 'Guesses at one place', range: [1, 16, 1], first: 16, nameOf: {1: '1: a chain'}},
  {name: 'policy', label: 'How much to guess', choices: kPolicies, first: 'auto'},
  {name: 'drafters', label: 'Who guesses', text: ['lookup', 'none'], first: '', hint: 'empty: the server’s default'},
];
const kGroups = [['Sampler', kSampler], ['Tree of guesses', kBudget]];
const kFields = kGroups.flatMap(([, fields]) => fields);
const kLargestSeed = 2 ** 32;  // of those made up here

export class Settings {
  #values = {};
  #storage;
  #inputs = new Map();

  // Puts the form into `place`, filled with what the storage has.
  constructor(place, storage) {
    this.#storage = storage;
    const kept = storage.get('settings', {});
    for (const [title, fields] of kGroups) {
      const rows = fields.map((field) => this.#row(field));
      place.append(element('fieldset', {}, h('legend', {}, title), rows));
    }
    for (const field of kFields) this.#set(field, valid(field, kept[field.name]) ? kept[field.name] : field.first);
  }

  reset() {
    for (const field of kFields) this.#set(field, field.first);
    this.#keep();
  }

  // The fields of a request that say how tokens are drawn. Without a seed of the person's one is made up, so that the same answer can
  // be asked for again.
  sampler() {
    const sent = kSampler.filter(({name, off}) => this.#values[name] !== null && this.#values[name] !== off);
    const request = Object.fromEntries(sent.map(({name}) => [name, this.#values[name]]));
    return {...request, seed: request.seed ?? Math.floor(Math.random() * kLargestSeed)};
  }

  // The request's `speculation`: with the tree of every pass, and statistics at the end.
  speculation() {
    const {drafters, ...budget} = Object.fromEntries(kBudget.map(({name}) => [name, this.#values[name]]));
    return {...budget, ...(drafters && {drafters}), trace: true, stats: true};
  }

  // The same without guesses.
  static plain() {
    return {drafters: 'none', trace: true, stats: true};
  }

  // Names that the server knows for mixes of drafters.
  offerDrafters(names) {
    const list = document.getElementById('drafters-known');
    list.replaceChildren(...[...new Set([...names, 'lookup', 'none'])].map((value) => element('option', {value})));
  }

  #row(field) {
    const id = `field-${field.name}`;
    const output = field.range && element('output', {for: id, id: `${id}-value`});
    const hint = field.hint && element('span', {class: 'hint', id: `${id}-hint`}, field.hint);
    const input = control(field, {id, name: field.name, ...(hint && {'aria-describedby': `${id}-hint`})});
    input.addEventListener(field.range ? 'input' : 'change', () => this.#changed(field));
    this.#inputs.set(field, {input, output});
    const label = h('label', {for: id}, field.label);
    const list = field.text && h('datalist', {id: 'drafters-known'}, field.text.map((value) => h('option', {value})));
    return make(h('div', {class: `field ${field.range ? 'slider' : ''}`}, label, output ?? null, input, list || null, hint ?? null));
  }

  #changed(field) {
    const value = read(field, this.#inputs.get(field).input);
    this.#set(field, valid(field, value) ? value : field.first);
    this.#keep();
  }

  #set(field, value) {
    this.#values[field.name] = value;
    const {input, output} = this.#inputs.get(field);
    input.value = value ?? '';
    if (!output) return;
    const words = field.nameOf?.[value] ?? (value === field.off ? 'off' : String(value));
    output.textContent = words;
    input.setAttribute('aria-valuetext', words);
  }

  #keep() {
    this.#storage.set('settings', this.#values);
  }
}

function control(field, attrs) {
  if (field.choices) return element('select', attrs, field.choices.map((value) => h('option', {value}, value)));
  if (field.text) return element('input', {...attrs, type: 'text', list: 'drafters-known', autocomplete: 'off', spellcheck: 'false'});
  const [min, max, step] = field.range ?? [...field.whole, 1];
  return element('input', {...attrs, type: field.range ? 'range' : 'number', min, max, step});
}

function read(field, input) {
  if (field.choices || field.text) return input.value.trim();
  return input.value === '' ? null : Number(input.value);
}

// Whether a value is one that the field can have: what a person typed, or what was kept by an older page.
function valid(field, value) {
  if (field.choices) return field.choices.includes(value);
  if (field.text) return typeof value === 'string';
  if (value === null) return field.first === null;
  const [least, most] = field.range ?? field.whole;
  return typeof value === 'number' && value >= least && value <= most && (!field.whole || Number.isInteger(value));
}
