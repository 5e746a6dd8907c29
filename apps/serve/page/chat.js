// The conversation goes on: a message is sent, an answer streams into the transcript, is kept, can be stopped, asked for again, or
// asked for twice, plain and with guesses, to be compared.
import {Answer} from './answer.js';
import {closing, headline, verdict} from './answer_view.js';
import {inPlainWords} from './api.js';
import {messagesFor} from './conversations.js';
import {onFrame} from './dom.js';
import {Settings} from './settings.js';

const kHeads = ['Plain', 'With guesses'];

export class Chat {
  #parts;
  #stop = null;              // of the answer that streams
  #answers = new WeakMap();  // message -> Answer: those with trees, of this visit

  // parts: {server, conversations, settings, transcript, model()}, and who is told:
  //   onBusy(is)                 an answer begins, or all of it is there
  //   onGrown(answer, index)     more of the Answer to be message `index`
  //   onDone(answer, plain, end) `plain`: the Answer it was compared with, or null; `end`: what stands below it
  //   onError(error)             as well, if it failed
  //   onWait(seconds)            the server's model is being loaded
  //   onKept(lasts)              the conversation was kept, or could not be
  constructor(parts) {
    this.#parts = parts;
  }

  get busy() {
    return this.#stop !== null;
  }

  // The Answer of a message, or null if its trees are gone.
  answerOf(message) {
    return this.#answers.get(message) ?? null;
  }

  async send(text, compare = false) {
    if (this.busy || text === '') return;
    const {messages} = this.#parts.conversations.current;
    messages.push({role: 'user', content: text});
    this.#parts.transcript.addQuestion(messages.at(-1), messages.length - 1);
    this.#keep(this.#parts.conversations.current);
    await this.#answer(compare);
  }

  // Answers again what stands before message `index`; what followed is dropped.
  async again(index, compare = false) {
    if (this.busy) return;
    this.#dropFrom(index);
    await this.#answer(compare);
  }

  // Another text in place of message `index`; what followed is dropped.
  async edit(index, text) {
    if (this.busy) return;
    this.#dropFrom(index);
    await this.send(text);
  }

  stop() {
    this.#stop?.abort();
  }

  async #answer(compare) {
    const {conversations: {current}, transcript, settings} = this.#parts;
    const index = current.messages.length;
    const turn = {current, index, compare, answers: [], ...transcript.addAnswer(index, compare ? kHeads : [])};
    const request = {messages: messagesFor(current), ...settings.sampler(), ...this.#model()};
    const kinds = compare ? [Settings.plain(), settings.speculation()] : [settings.speculation()];
    transcript.toEnd();
    this.#busy(true);
    let failure = null;
    for (const speculation of kinds) {
      if (failure || turn.answers.at(-1)?.finish === 'stopped') break;
      turn.answers.push(new Answer());
      failure = await this.#stream({...request, speculation}, turn);
    }
    this.#busy(false);
    this.#finish(turn, failure, request);
  }

  // The last of the turn's answers, into its view. Returns the error if it failed, else null.
  async #stream(request, turn) {
    const answer = turn.answers.at(-1);
    const view = turn.views[turn.answers.length - 1];
    const head = turn.heads[turn.answers.length - 1];
    const frame = onFrame(() => {
      if (head) head.textContent = headline(kHeads[turn.answers.length - 1], answer);
      this.#draw(turn, answer, view);
    });
    view.busy(true);
    let failure = null;
    try {
      const chunks = this.#parts.server.chat(request, this.#stop.signal, this.#parts.onWait);
      let {done, value} = await chunks.next();
      for (; !done; {done, value} = await chunks.next()) {
        answer.take(value, performance.now() / 1000);
        frame.soon();
      }
      if (!value) answer.finish = 'broken';
    } catch (error) {
      const stopped = this.#stop.signal.aborted;
      answer.finish = stopped ? 'stopped' : 'broken';
      failure = stopped ? null : error;
    }
    view.busy(false);
    frame.now();
    return failure;
  }

  #draw({current, index}, answer, view) {
    const {transcript, conversations, onGrown} = this.#parts;
    const follow = transcript.nearEnd();
    view.draw(answer);
    if (conversations.current !== current) return;  // another one is looked at by now
    if (follow) transcript.toEnd();
    onGrown(answer, index);
  }

  // What was compared keeps its two columns until the conversation is shown anew; kept is the answer with guesses.
  #finish({current, index, article, answers, compare}, failure, request) {
    const {transcript, conversations, onDone, onError} = this.#parts;
    const answer = answers.at(-1);
    const plain = compare && answers.length === 2 ? answers[0] : null;
    const end = answer.text || !failure ? closing(answer, request) : {};
    if (plain) end.verdict = verdict({plain, guessed: answer});
    if (failure) end.error = inPlainWords(failure);
    if (answer.text && conversations.all.includes(current)) {  // it may have been deleted meanwhile
      const message = {role: 'assistant', content: answer.text, runs: answer.runs(), speculation: answer.speculation, ...end};
      current.messages.push(message);
      this.#answers.set(message, answer);
      this.#keep(current);
    }
    if (failure) onError(failure);
    if (conversations.current !== current) return;
    const follow = transcript.nearEnd();
    transcript.close(article, end);
    if (follow) transcript.toEnd();
    onDone(answer, plain, end);
  }

  #dropFrom(index) {
    this.#parts.conversations.current.messages.length = index;
    this.#parts.transcript.dropFrom(index);
  }

  #keep(conversation) {
    this.#parts.onKept(this.#parts.conversations.save(conversation));
  }

  #model() {
    const model = this.#parts.model();
    return model ? {model} : {};
  }

  #busy(is) {
    this.#stop = is ? new AbortController() : null;
    this.#parts.onBusy(is);
  }
}
