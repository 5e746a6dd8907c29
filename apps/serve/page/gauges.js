// How fast it goes: tokens a second beside plain decoding, guesses accepted in a pass, and the share of each drafter's guesses that
// was accepted. Numbers are the server's statistics; while an answer streams, what has been counted here so far.
import {element, h} from './dom.js';
import {placeOf} from './sources.js';
import {counts} from './trees.js';

const kSparks = 60;  // passes in the small chart
const kSparkWidth = 5;
const kSparkHeight = 36;

export class Gauges {
  #plain = new Map();  // tokens a second without guesses, by model
  #model = null;
  #speed = null;
  #storage;

  constructor(storage) {
    this.#storage = storage;
    this.#plain = new Map(Object.entries(storage.get('plain', {})));
  }

  setModel(model) {
    this.#model = model;
    this.#speeds();
  }

  // What plain decoding brings, measured by a comparison.
  setPlain(speed) {
    if (!speed) return;
    this.#plain.set(this.#model, speed);
    this.#storage.set('plain', Object.fromEntries(this.#plain));
    this.#speeds();
  }

  // An Answer, while it grows and when it is done.
  show(answer) {
    this.#speed = answer.speed();
    this.#speeds();
    const statistics = answer.speculation;
    if (answer.passes.length) this.#accepted(answer.passes, statistics);
    if (statistics?.sources) this.#sources(statistics.sources);
    else if (answer.passes.length) this.#sources(countedHere(answer.passes));
  }

  // The statistics of an answer that was kept.
  showKept(statistics) {
    this.#speed = statistics?.tokens_per_second ?? null;
    this.#speeds();
    put('accepted', number(statistics?.mean_accepted, 2));
    put('accepted-of', statistics ? perPass(statistics.tokens_per_pass) : '');
    this.#sources(statistics?.sources ?? []);
    document.getElementById('spark').replaceChildren();
  }

  #speeds() {
    const plain = this.#plain.get(this.#model) ?? null;
    const most = Math.max(this.#speed ?? 0, plain ?? 0);
    put('speed', number(this.#speed, 1));
    put('speed-up', this.#speed && plain ? `${(this.#speed / plain).toFixed(2)} times plain` : '');
    put('plain', number(plain, 1));
    put('plain-from', plain ? 'by the last comparison' : 'not measured yet: press Compare');
    widen('speed-bar', most ? (this.#speed ?? 0) / most : 0);
    widen('plain-bar', most ? (plain ?? 0) / most : 0);
  }

  #accepted(passes, statistics) {
    const counted = passes.map(counts);
    const taken = counted.map((pass) => pass.taken);
    const tokens = counted.map((pass) => pass.tokens);
    const mean = statistics?.mean_accepted ?? average(taken);
    put('accepted', number(mean, 2));
    put('accepted-of', perPass(statistics?.tokens_per_pass ?? average(tokens)));
    document.getElementById('spark').replaceChildren(spark(taken.slice(-kSparks)));
  }

  #sources(sources) {
    const rows = sources.map(({name, proposed, accepted}) => {
      const share = proposed ? accepted / proposed : 0;
      const bar = element('span', {class: placeOf(name)});
      bar.style.setProperty('--share', share);
      return element('tr', {}, h('th', {scope: 'row'}, h('span', {class: `token ${placeOf(name)}`}, name)),
        h('td', {}, `${accepted} of ${proposed}`),
        h('td', {}, `${Math.round(share * 100)}% `, h('span', {class: 'bar', 'aria-hidden': 'true'}, bar)));
    });
    document.querySelector('#sources tbody').replaceChildren(...rows);
    document.getElementById('sources').hidden = rows.length === 0;
  }
}

// Guesses of each drafter and those taken, counted in the trees; one that two had made counts for both.
function countedHere(passes) {
  const found = new Map();
  for (const node of passes.flatMap((tree) => tree.nodes.slice(1))) {
    for (const name of node.sources ?? []) {
      const own = found.get(name) ?? {name, proposed: 0, accepted: 0};
      own.proposed += 1;
      own.accepted += node.taken ? 1 : 0;
      found.set(name, own);
    }
  }
  return [...found.values()];
}

function spark(values) {
  const most = Math.max(4, ...values);
  const bars = values.map((value, i) => {
    const height = 1 + (value / most) * (kSparkHeight - 2);
    return h('rect', {x: i * kSparkWidth, y: kSparkHeight - height, width: kSparkWidth - 1, height});
  });
  return element('svg', {viewBox: `0 0 ${kSparks * kSparkWidth} ${kSparkHeight}`, class: 'spark', preserveAspectRatio: 'none'}, bars);
}

function perPass(tokens) {
  return tokens ? `${tokens.toFixed(2)} tokens in a pass` : '';
}

function average(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function number(value, digits) {
  return Number.isFinite(value) ? value.toFixed(digits) : '–';
}

function put(id, text) {
  document.getElementById(id).textContent = text;
}

function widen(id, share) {
  document.getElementById(id).style.setProperty('--share', share);
}
