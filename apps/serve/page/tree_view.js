// The view of a pass's tree: boxes for tokens, lines as thick as a guess was likely, what was taken filled. Follows the newest pass
// while an answer streams; slider, buttons and arrow keys step through all of them. The same is there in words.
import {element, h} from './dom.js';
import {placeOf} from './sources.js';
import {branches, counts, kHeight, layout, said, shown} from './trees.js';

const kMargin = 7;         // as trees.js
const kThinnest = 0.75;    // px of a line's width; the rest is by value
const kThickest = 7;
const kQuiet = 1000;       // ms between two trees where little motion is wanted
const kLively = 100;

export class TreeView {
  #answer = null;
  #at = 0;
  #follows = true;
  #drawn = 0;       // when the last tree was drawn
  #timer = null;
  #onPass;

  // `onPass(answer, pass)` is told which pass is looked at.
  constructor(onPass) {
    this.#onPass = onPass;
    byId('pass-back').addEventListener('click', () => this.go(this.#at - 1));
    byId('pass-on').addEventListener('click', () => this.go(this.#at + 1));
    byId('pass').addEventListener('input', (event) => this.go(Number(event.target.value) - 1));
    byId('pass-live').addEventListener('click', () => this.#follow(!this.#follows));
    byId('tree').addEventListener('keydown', (event) => this.#key(event));
    byId('tree-in-words').addEventListener('toggle', () => this.#draw());
    this.#draw();
  }

  // Another answer (or null), from its newest pass.
  show(answer) {
    this.#answer = answer;
    this.#follow(true);
  }

  // The answer has grown. Trees follow each other faster than anyone can look, so not every one is drawn.
  grown() {
    if (this.#timer !== null) return;
    const least = matchMedia('(prefers-reduced-motion: reduce)').matches ? kQuiet : kLively;
    const wait = Math.max(0, this.#drawn + least - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#draw();
    }, wait);
  }

  // The answer grows no more: the last tree at once.
  settle() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#draw();
  }

  // To a pass, counted from 0; stops following.
  go(pass, answer = this.#answer) {
    this.#answer = answer;
    this.#at = Math.max(0, Math.min(pass, (answer?.passes.length ?? 0) - 1));
    this.#follow(false);
  }

  #follow(follows) {
    this.#follows = follows;
    byId('pass-live').setAttribute('aria-pressed', String(follows));
    byId('pass-words').setAttribute('aria-live', follows ? 'off' : 'polite');  // said aloud when a person steps
    this.#draw();
  }

  #key(event) {
    const last = (this.#answer?.passes.length ?? 0) - 1;
    const to = {ArrowLeft: this.#at - 1, ArrowRight: this.#at + 1, Home: 0, End: last}[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.go(to);
  }

  #draw() {
    this.#drawn = performance.now();
    const passes = this.#answer?.passes ?? [];
    if (this.#follows) this.#at = Math.max(0, passes.length - 1);
    const tree = passes[this.#at] ?? null;
    const slider = byId('pass');
    slider.max = Math.max(1, passes.length);
    slider.value = this.#at + 1;
    slider.disabled = passes.length < 2;
    slider.setAttribute('aria-valuetext', `${this.#at + 1} of ${passes.length}`);
    byId('pass-back').disabled = this.#at <= 0;
    byId('pass-on').disabled = this.#at >= passes.length - 1;
    byId('pass-words').textContent = tree ? words(tree, this.#at, passes.length) : nothing(this.#answer);
    byId('tree').replaceChildren(...(tree ? [picture(tree)] : []));
    const open = byId('tree-in-words').open && tree;
    byId('tree-words').replaceChildren(...(open ? [element('ul', {}, inWords(branches(tree)))] : []));
    this.#onPass(this.#answer, tree ? this.#at : null, this.#follows);
  }
}

// The legend: how what each of these has guessed is marked, and what is not marked.
export function legend(names) {
  const rows = [...names.map((name) => [placeOf(name), name]), ['by-target', 'nobody: the model’s own']];
  return rows.map(([place, name]) => element('li', {}, h('span', {class: `token ${place}`}, name)));
}

function words(tree, at, count) {
  const {guessed, taken, tokens} = counts(tree);
  const guesses = guessed === 0 ? 'nothing guessed' : `${guessed} guessed, ${taken} accepted`;
  return `Pass ${at + 1} of ${count}: ${guesses}, ${tokens} ${tokens === 1 ? 'token' : 'tokens'}`;
}

function nothing(answer) {
  return answer ? 'The trees of this answer are not kept. Answer again to see them.' : 'Nothing has been answered yet.';
}

function picture(tree) {
  const {nodes, width, height} = layout(tree);
  const lines = nodes.filter((box) => box.from).map(line);
  const label = `The path taken: ${nodes.filter((box) => box.node.taken).map((box) => shown(box.node.text)).join(' ')}`;
  return element('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label}, lines, nodes.map(box));
}

function line({x, y, node, from}) {
  const [x0, y0] = [from.x + from.width, from.y];
  const middle = (x0 + x) / 2;
  const path = `M${x0} ${y0}C${middle} ${y0} ${middle} ${y} ${x} ${y}`;
  const width = node.drawn ? 1.5 : kThinnest + node.value * (kThickest - kThinnest);
  return h('path', {d: path, class: `edge ${node.taken ? 'taken' : ''}`, 'stroke-width': width.toFixed(2)});
}

function box({x, y, width, label, note, node}) {
  const kind = node.root ? 'root' : node.drawn ? 'drawn' : node.taken ? 'taken' : 'left';
  return h('g', {class: `node ${kind} ${placeOf(node.sources[0])}`},
    h('title', {}, said(node)),
    h('rect', {x, y: y - kHeight / 2, width, height: kHeight, rx: 5}),
    h('text', {x: x + kMargin, y: y + 4}, label),
    note ? h('text', {x: x + width - kMargin, y: y + 4, class: 'value'}, note) : null);
}

// Nested lists; a path that does not branch goes on in the same list, so that depth in the list is a choice and not a place.
function inWords(node) {
  const items = [];
  for (let at = node; at; at = at.children[0]) {
    const others = at.children.slice(1);
    items.push(h('li', {}, said(at), others.map((child) => h('ul', {}, inWords(child)))));
  }
  return items;
}

function byId(id) {
  return document.getElementById(id);
}
