// Puts the page together: the parts, what they tell each other, and what keys and buttons do.
import {tokensOfRuns} from './answer.js';
import {Server} from './api.js';
import {Chat} from './chat.js';
import {Conversations, titleOf} from './conversations.js';
import {element, h} from './dom.js';
import {closeOverlays, fit, notice, sessionKey, startLooks, startPanels} from './frame.js';
import {Gauges} from './gauges.js';
import {Settings} from './settings.js';
import {BrowserStorage} from './storage.js';
import {showCopied, Transcript} from './transcript.js';
import {legend, TreeView} from './tree_view.js';

const kExamples = [
  'Write a Python function that says whether a number is prime, and explain it.',
  'List the planets of the solar system in a table, with their diameters.',
  'Copy this sentence five times: the quick brown fox jumps over the lazy dog.',
];
const kEvery = 200;  // ms between two readings of the gauges while an answer streams
const byId = (id) => document.getElementById(id);

let shown = {answer: null, index: null};  // whose passes are looked at: an Answer, and its message's place
let read = 0;                             // when the gauges were read last, in ms
const guessers = new Set();               // whose guesses have been seen: the legend

const storage = new BrowserStorage();
const server = new Server();
const conversations = new Conversations(storage);
const settings = new Settings(byId('fields'), storage);
const gauges = new Gauges(storage);
const transcript = new Transcript(act, (message) => chat.answerOf(message)?.tokens ?? tokensOfRuns(message.runs));
const tree = new TreeView(lookAt);
const chat = new Chat({
  server, conversations, settings, transcript, model: () => byId('model').value,
  onBusy: busy, onGrown: grown, onDone: done, onError: failed,
  onWait: (seconds) => notice(`The model is being loaded; the page asks again in ${seconds} s.`),
  onKept: (lasts) => {
    byId('storage').hidden = lasts;
    listConversations();
  },
});

// ---- an answer ----

function busy(is) {
  const held = [byId('send'), byId('compare'), byId('stop')].includes(document.activeElement);
  byId('send').hidden = is;
  byId('compare').hidden = is;
  byId('stop').hidden = !is;
  if (held) byId('message').focus();
  if (is) notice('Answering.');
}

function grown(answer, index) {
  if (shown.answer !== answer) {
    shown = {answer, index};
    tree.show(answer);
  }
  tree.grown();
  if (performance.now() - read < kEvery) return;
  read = performance.now();
  gauges.show(answer);
  showGuessers(answer.tokens.map(({source}) => source));
}

function done(answer, plain, end) {
  tree.settle();
  if (plain) gauges.setPlain(plain.speed());
  if (answer.count > 0) gauges.show(answer);
  showGuessers([...answer.tokens.map(({source}) => source), ...(answer.speculation?.sources ?? []).map(({name}) => name)]);
  if (!end.error) notice(end.verdict?.short ?? `Answered: ${answer.length()} tokens.`);
}

function failed(error) {
  notice('');
  if (error.status !== 401) return;
  byId('key-form').hidden = false;
  byId('key').focus();
}

function showGuessers(names) {
  const before = guessers.size;
  for (const name of names) if (name !== null) guessers.add(name);
  if (guessers.size > before) byId('legend').replaceChildren(...legend([...guessers]));
}

// The pass that is looked at stands out in the text, once a person has chosen one.
function lookAt(answer, pass, follows) {
  transcript.mark(shown.index, follows || answer === null ? null : pass);
}

// What a button of a message does, or a click on a token.
function act(action, index, from) {
  const message = conversations.current.messages[index];
  switch (action) {
    case 'copy': return showCopied(from, message?.content ?? '');
    case 'edit': return chat.busy ? null : transcript.edit(index, (text) => text !== null && chat.edit(index, text));
    case 'again': return chat.again(index);
    case 'compare': return chat.again(index, true);
    case 'passes': return showPasses(index, 0);
    case 'pass': return showPasses(index, Number(from.dataset.pass));
    default: return null;
  }
}

function showPasses(index, pass) {
  if (chat.busy) return;
  const message = conversations.current.messages[index];
  const answer = chat.answerOf(message);
  shown = {answer: answer ?? {passes: []}, index};
  byId('passes').open = true;
  tree.go(pass, shown.answer);
  if (answer) gauges.show(answer);
  else gauges.showKept(message?.speculation ?? null);
}

// ---- conversations ----

function listConversations() {
  byId('conversations').replaceChildren(...conversations.all.map((conversation) => {
    const title = titleOf(conversation);
    const current = conversation === conversations.current ? 'true' : null;
    return element('li', {},
      h('button', {type: 'button', class: 'open', 'aria-current': current, onClick: () => openConversation(conversation)}, title),
      h('button', {type: 'button', class: 'remove', 'aria-label': `Delete: ${title}`, onClick: () => remove(conversation)}, '×'));
  }));
}

function openConversation(conversation) {
  chat.stop();
  conversations.current = conversation;
  shown = {answer: null, index: null};
  byId('system').value = conversation.system;
  transcript.show(conversation.messages);
  tree.show(null);
  gauges.showKept(conversation.messages.at(-1)?.speculation ?? null);
  showGuessers(conversation.messages.flatMap(({runs}) => (runs ?? []).map(([, source]) => source)));
  listConversations();
  closeOverlays();
}

function remove(conversation) {
  const current = conversations.current === conversation;
  conversations.remove(conversation);
  if (current) openConversation(conversations.current);
  else listConversations();
  byId('new').focus();
  notice('Deleted.', {words: 'Undo', act: () => {
    conversations.restore(conversation);
    openConversation(conversation);
    notice('');
    byId('message').focus();
  }});
}

async function loadModels() {
  try {
    const models = await server.models();
    const chosen = storage.get('model', '');
    byId('model').replaceChildren(...models.map(({id}) => element('option', {value: id}, id)));
    if (models.some(({id}) => id === chosen)) byId('model').value = chosen;
    settings.offerDrafters(models.flatMap(({drafters}) => (Array.isArray(drafters) ? drafters : [])));
    byId('key-form').hidden = true;
    notice('');
  } catch (error) {
    failed(error);
    if (error.status !== 401) notice('The server cannot be reached, or does not say which models it has.', {words: 'Try again', act: loadModels});
  }
  gauges.setModel(byId('model').value);
}

// ---- keys and buttons ----

function send(compare) {
  const field = byId('message');
  const text = field.value.trim();
  if (chat.busy || text === '') return;
  field.value = '';
  fit(field);
  chat.send(text, compare);
}

function listen() {
  const on = (id, event, run) => byId(id).addEventListener(event, run);
  on('composer', 'submit', (event) => {
    event.preventDefault();
    send(false);
  });
  on('message', 'keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send(false);
  });
  on('message', 'input', (event) => fit(event.target));
  on('compare', 'click', () => send(true));
  on('stop', 'click', () => chat.stop());
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !closeOverlays()) chat.stop();
  });
  on('new', 'click', () => {
    openConversation(conversations.create());
    byId('message').focus();
  });
  on('settings', 'submit', (event) => event.preventDefault());
  on('reset', 'click', () => settings.reset());
  on('system', 'input', (event) => {
    conversations.current.system = event.target.value;
    if (conversations.current.messages.length > 0) conversations.save();
  });
  on('model', 'change', (event) => {
    storage.set('model', event.target.value);
    gauges.setModel(event.target.value);
  });
  on('key-form', 'submit', (event) => {
    event.preventDefault();
    server.key = byId('key').value.trim();
    sessionKey.set(server.key);
    loadModels();
    byId('message').focus();
  });
}

function offerExamples() {
  byId('examples').replaceChildren(...kExamples.map((text) => element('li', {},
    h('button', {type: 'button', onClick: () => !chat.busy && chat.send(text)}, text))));
}

server.key = sessionKey.get();
listen();
startPanels();
startLooks(storage);
offerExamples();
byId('storage').hidden = storage.lasting;
byId('legend').replaceChildren(...legend([]));
openConversation(conversations.current);
loadModels();
byId('message').focus();
