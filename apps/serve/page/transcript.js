// A conversation on the page: an article for each message, with its buttons. Knows nothing of the server: what a button means is
// told to `act(name, index, button)`, where index is the message's. `tokensOf(message)` knows the tokens of an answer that is shown anew.
import {actions, AnswerView} from './answer_view.js';
import {copyText, element, h, make} from './dom.js';

const kNear = 80;      // px from the end that still count as the end
const kCopied = 1500;  // ms that a button says so
const kVerdicts = new Map([[true, 'same'], [false, 'differs'], [null, 'open']]);

export class Transcript {
  #place = document.getElementById('messages');
  #scroller = document.getElementById('conversation');
  #act;
  #tokensOf;

  constructor(act, tokensOf) {
    this.#act = act;
    this.#tokensOf = tokensOf;
    this.#place.addEventListener('click', (event) => this.#click(event));
  }

  // All messages of a conversation, anew.
  show(messages) {
    document.getElementById('welcome').hidden = messages.length > 0;
    this.#place.replaceChildren(...messages.map((message, index) =>
      (message.role === 'user' ? this.#question(message, index) : this.#kept(message, index))));
    this.toEnd();
  }

  // Takes away message `index` and what follows.
  dropFrom(index) {
    for (const article of [...this.#place.children]) if (Number(article.dataset.index) >= index) article.remove();
  }

  // A message of the person's, at the end; in place of an answer that failed, if one stands there.
  addQuestion(message, index) {
    this.dropFrom(index);
    document.getElementById('welcome').hidden = true;
    this.#place.append(this.#question(message, index));
  }

  // An article for an answer that will come, in one column for each of `heads`: {article, views, heads}, the latter two in order.
  addAnswer(index, heads = []) {
    const views = (heads.length ? heads : [null]).map(() => new AnswerView());
    const titles = heads.map((head) => element('h4', {class: 'head'}, head));
    const columns = titles.map((title, i) => h('div', {class: 'column'}, title, views[i].element));
    const article = this.#article(index, 'Answer', heads.length ? h('div', {class: 'columns'}, columns) : views[0].element);
    this.dropFrom(index);
    this.#place.append(article);
    return {article, views, heads: titles};
  }

  // What stands below an answer that is done.
  close(article, {figures = '', cut = null, verdict = null, error = null}) {
    const notes = [
      verdict && h('p', {class: `verdict ${kVerdicts.get(verdict.same)}`}, verdict.words),
      cut && h('p', {class: 'cut'}, cut),
      error && h('p', {class: 'error', role: 'alert'}, error),
      figures && h('p', {class: 'figures'}, figures),
    ].filter(Boolean);
    article.querySelector('.columns')?.classList.add('done');
    const buttons = error && !figures ? actions(['again', 'Try again', 'Ask the server again']) : answerActions();
    article.append(...[...notes, buttons].map((note) => make(note)));
  }

  // Puts a field in place of a question; `done(text)` is told the new text, or null where nothing is to change.
  edit(index, done) {
    const article = this.#place.children[index];
    const text = article.querySelector('.question');
    const field = element('textarea', {rows: '3', 'aria-label': 'Edit your message'});
    field.value = text.textContent;
    const finish = (value) => {
      form.replaceWith(text);
      article.querySelector('.actions').hidden = false;
      if (value === null) article.querySelector('[data-action=edit]').focus();
      done(value);
    };
    const form = element('form', {class: 'editor', onSubmit: (event) => {
      event.preventDefault();
      finish(field.value.trim() || null);
    }}, field, h('div', {class: 'buttons'}, h('button', {type: 'submit', class: 'main'}, 'Send again'),
      h('button', {type: 'button', onClick: () => finish(null)}, 'Leave it')));
    field.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') finish(null);
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    article.querySelector('.actions').hidden = true;
    text.replaceWith(form);
    field.focus();
  }

  // The tokens of one pass stand out in the article of an answer; null: of none.
  mark(index, pass) {
    for (const token of this.#place.querySelectorAll('.here')) token.classList.remove('here');
    if (index === null || pass === null) return;
    const article = this.#place.querySelector(`article[data-index="${index}"]`);
    for (const token of article?.querySelectorAll(`[data-pass="${pass}"]`) ?? []) token.classList.add('here');
  }

  nearEnd() {
    const {scrollHeight, scrollTop, clientHeight} = this.#scroller;
    return scrollHeight - scrollTop - clientHeight < kNear;
  }

  toEnd() {
    this.#scroller.scrollTop = this.#scroller.scrollHeight;
  }

  #article(index, who, ...inside) {
    return element('article', {'data-index': String(index), class: who === 'You' ? 'you' : 'answer'}, h('h3', {class: 'who'}, who), ...inside);
  }

  #question(message, index) {
    return this.#article(index, 'You', h('div', {class: 'question'}, message.content),
      actions(['edit', 'Edit', 'Edit this message and answer again'], ['copy', 'Copy', 'Copy this message']));
  }

  #kept(message, index) {
    const view = new AnswerView();
    view.draw({text: message.content, tokens: this.#tokensOf(message)});
    const article = this.#article(index, 'Answer', view.element);
    this.close(article, message);
    return article;
  }

  async #click(event) {
    const article = event.target.closest('article');
    const token = event.target.closest('[data-pass]');
    const button = event.target.closest('button[data-action]');
    if (!article) return;
    const index = Number(article.dataset.index);
    if (button?.dataset.action === 'copy-code') await showCopied(button, button.closest('.code').querySelector('code').textContent);
    else if (button) this.#act(button.dataset.action, index, button);
    else if (token) this.#act('pass', index, token);
  }
}

function answerActions() {
  return actions(['copy', 'Copy', 'Copy this answer'], ['again', 'Again', 'Answer again'],
    ['compare', 'Compare', 'Answer again, plain and with guesses'], ['passes', 'Passes', 'Show the passes of this answer']);
}

// Copies, and says so on the button for a moment.
export async function showCopied(button, text) {
  const words = button.textContent;
  button.textContent = await copyText(text) ? 'Copied' : 'Not copied';
  setTimeout(() => {
    button.textContent = words;
  }, kCopied);
}
