// The conversations: {id, changed, system, messages}, the newest first. A message is {role, content}; an answer also has what is
// kept of how it came to be: {runs, speculation, cut, plain}. Trees are not kept, they are many times larger than the text.

const kTitle = 44;  // letters

export class Conversations {
  #storage;
  #now;

  constructor(storage, now = Date.now) {
    this.#storage = storage;
    this.#now = now;
    this.all = storage.names('conversation.').map((name) => storage.get(name)).filter(whole);
    this.#sort();
    this.current = this.all[0] ?? this.create();
  }

  // A new one, the current one from now on. It is kept once it has a message.
  create() {
    this.current = {id: newId(), changed: this.#now(), system: '', messages: []};
    return this.current;
  }

  // Keeps one. Where the browser's storage is full, the oldest ones make room; false if even that was not enough.
  save(own = this.current) {
    own.changed = this.#now();
    if (!this.all.includes(own)) this.all.push(own);
    this.#sort();
    while (!this.#storage.set(`conversation.${own.id}`, own)) {
      const oldest = this.all.at(-1);
      if (!this.#storage.lasting || oldest === own) return false;
      this.remove(oldest);
    }
    return true;
  }

  remove(conversation) {
    this.all = this.all.filter((one) => one !== conversation);
    this.#storage.remove(`conversation.${conversation.id}`);
    if (this.current === conversation) this.current = this.all[0] ?? this.create();
  }

  // Takes back a removal.
  restore(conversation) {
    this.current = conversation;
    return this.save();
  }

  #sort() {
    this.all.sort((a, b) => b.changed - a.changed);
  }
}

export function titleOf(conversation) {
  const first = conversation.messages.find((message) => message.role === 'user')?.content ?? 'New conversation';
  const line = first.replace(/\s+/g, ' ').trim();
  return line.length > kTitle ? `${line.slice(0, kTitle - 1)}…` : line;
}

// What the model is given.
export function messagesFor(conversation) {
  const system = conversation.system.trim() ? [{role: 'system', content: conversation.system}] : [];
  return [...system, ...conversation.messages.map(({role, content}) => ({role, content}))];
}

function whole(conversation) {
  return typeof conversation?.id === 'string' && Array.isArray(conversation.messages) && typeof conversation.system === 'string';
}

function newId() {
  return [...crypto.getRandomValues(new Uint32Array(3))].map((part) => part.toString(36)).join('');
}
