// An answer on the page: its text as markdown, painted by who guessed each token, drawn again only where it has grown.
import {whyCut} from './answer.js';
import {element, h, patch} from './dom.js';
import {MarkdownStream} from './markdown.js';
import {paint} from './sources.js';

export class AnswerView {
  #stream = new MarkdownStream();
  #length = 0;  // of the text that the stream has
  #open = [];   // descriptions of the blocks that may still change, as they are drawn in #tail
  #tail = element('div', {class: 'tail'});

  constructor() {
    this.element = element('div', {class: 'markdown'}, this.#tail);
  }

  // `text` is what was there before and more.
  draw({text, tokens}) {
    this.#stream.append(text.slice(this.#length));
    this.#length = text.length;
    const {fixed, open} = this.#stream.take();
    const now = [...fixed, ...open].flatMap((block) => paint(block, tokens));
    patch(this.#tail, this.#open, now);
    for (let i = 0; i < fixed.length; i++) this.#tail.before(this.#tail.firstChild);
    this.#open = now.slice(fixed.length);
  }

  busy(is) {
    this.element.classList.toggle('busy', is);
    this.element.setAttribute('aria-busy', String(is));
  }
}

// What stands below an answer that is done: its figures, and why it is not whole if it is not.
export function closing(answer, request) {
  return {figures: figures(answer, request), cut: whyCut(answer, request.max_tokens)};
}

function figures(answer, {seed, temperature}) {
  const tokens = answer.length();
  const parts = [`${tokens} ${tokens === 1 ? 'token' : 'tokens'}`];
  const {passes, tokens_per_second: speed} = answer.speculation ?? {};
  if (passes) parts.push(`${passes} ${passes === 1 ? 'pass' : 'passes'}`);
  if (speed) parts.push(`${speed.toFixed(1)} tokens a second`);
  if (temperature > 0) parts.push(`seed ${seed}`);
  return parts.join(', ');
}

// What stands above an answer that is compared with another.
export function headline(words, answer) {
  const speed = answer.speed();
  return speed ? `${words}: ${speed.toFixed(1)} tokens a second` : words;
}

// Two answers to one question, {plain, guessed} as Answers: {same, times, short, words}. `same` is null where one of them did not end.
export function verdict({plain, guessed}) {
  const [a, b] = [plain.speed(), guessed.speed()];
  const times = a && b ? b / a : null;
  const unfinished = [plain, guessed].some(({finish}) => finish === null || finish === 'stopped' || finish === 'broken');
  if (unfinished) return {same: null, times: null, short: 'Not compared.', words: 'Not compared: an answer did not come to its end.'};
  const same = plain.text === guessed.text && plain.finish === guessed.finish;
  const speed = times ? ` ${times.toFixed(2)} times as fast (${b.toFixed(1)} against ${a.toFixed(1)} tokens a second).` : '';
  if (same) return {same, times, short: 'Same text.', words: `Same text: all ${guessed.length()} tokens.${speed}`};
  return {same, times, short: 'The texts differ.', words: `The texts differ from letter ${differsAt(plain.text, guessed.text) + 1} on.${speed}`};
}

function differsAt(a, b) {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

// A row of an article's buttons: [name, words, label for those who do not see where it stands].
export function actions(...buttons) {
  return h('div', {class: 'actions'}, buttons.map(([action, words, label]) =>
    h('button', {type: 'button', 'data-action': action, 'aria-label': label, title: label}, words)));
}
