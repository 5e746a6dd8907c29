// What the browser keeps: conversations outlive the page, make room for each other, and go on without any storage.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Conversations, messagesFor, titleOf} from '../page/conversations.js';
import {BrowserStorage} from '../page/storage.js';

// A browser's storage for `most` letters.
class Browser {
  map = new Map();

  constructor(most = Infinity) {
    this.most = most;
  }

  get length() {
    return this.map.size;
  }

  key(i) {
    return [...this.map.keys()][i];
  }

  getItem(name) {
    return this.map.get(name) ?? null;
  }

  setItem(name, text) {
    const others = [...this.map].filter(([other]) => other !== name).reduce((sum, [, value]) => sum + value.length, 0);
    if (others + text.length > this.most) throw new Error('QuotaExceededError');
    this.map.set(name, text);
  }

  removeItem(name) {
    this.map.delete(name);
  }
}

function filled(storage, count, length = 10) {
  let time = 0;
  const conversations = new Conversations(storage, () => ++time);
  for (let i = 0; i < count; i++) {
    conversations.create().messages.push({role: 'user', content: `${i}${'x'.repeat(length)}`});
    conversations.save();
  }
  return conversations;
}

test('conversations come back, the newest first', () => {
  const browser = new Browser();
  const before = filled(new BrowserStorage(() => browser), 3);
  const after = new Conversations(new BrowserStorage(() => browser));
  assert.equal(after.all.length, 3);
  assert.deepEqual(after.current, before.all[0]);
});

test('where the storage is full the oldest make room', () => {
  const conversations = filled(new BrowserStorage(() => new Browser(1000)), 10, 300);
  assert.ok(conversations.all.length < 4);
  assert.ok(conversations.all.some(({messages}) => messages[0].content.startsWith('9')));
});

test('without storage everything goes on in memory', () => {
  const storage = new BrowserStorage(() => {
    throw new Error('denied');
  });
  assert.equal(storage.lasting, false);
  storage.set('theme', 'dark');
  assert.equal(storage.get('theme'), 'dark');
  const conversations = filled(storage, 2);
  assert.equal(conversations.save(), false);
  assert.equal(conversations.all.length, 2);
});

test('what somebody else wrote into the storage does no harm', () => {
  const browser = new Browser();
  browser.setItem('coppice.conversation.x', 'no JSON');
  browser.setItem('coppice.conversation.y', '{"id": 3}');
  browser.setItem('coppice.settings', '[[');
  const storage = new BrowserStorage(() => browser);
  assert.deepEqual(new Conversations(storage).all, []);
  assert.deepEqual(storage.get('settings', {}), {});
});

test('a removal can be taken back', () => {
  const conversations = filled(new BrowserStorage(() => new Browser()), 2);
  const one = conversations.current;
  conversations.remove(one);
  assert.notEqual(conversations.current, one);
  conversations.restore(one);
  assert.equal(conversations.current, one);
  assert.equal(conversations.all.length, 2);
});

test('the model is given the system prompt and the texts, and nothing of how they came to be', () => {
  const conversation = {system: 'be brief', messages: [{role: 'user', content: 'a  b\n'}, {role: 'assistant', content: 'c', runs: [[1, null]]}]};
  assert.deepEqual(messagesFor(conversation), [{role: 'system', content: 'be brief'}, {role: 'user', content: 'a  b\n'}, {role: 'assistant', content: 'c'}]);
  assert.equal(titleOf(conversation), 'a b');
});
