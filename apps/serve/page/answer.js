// One answer as it comes in: its text, who guessed each token, the tree of each pass, and what the server counted.
// Knows nothing of the page; times are seconds, handed in.

export class Answer {
  text = '';
  tokens = [];        // {begin, source, pass}: where in the text a token begins, who guessed it (null: the model itself), in which pass
  passes = [];        // trees as the server sent them, one a pass
  speculation = null;  // the server's statistics, at the end
  usage = null;
  finish = null;       // why it ended: the server's stop_reason or finish_reason; null: it has not
  count = 0;           // tokens so far
  #covered = 0;        // length of the text that tokens have brought
  #first = null;       // when the first token came, and the last
  #last = null;

  // A chunk of the stream.
  take(chunk, now) {
    const choice = chunk.choices?.[0];
    const text = choice?.delta?.content ?? '';
    this.text += text;
    this.finish = choice?.stop_reason ?? choice?.finish_reason ?? this.finish;
    this.speculation = chunk.speculation ?? this.speculation;
    this.usage = chunk.usage ?? this.usage;
    if (chunk.coppice) this.#pass(chunk.coppice);
    const brought = chunk.coppice?.tokens?.length ?? (text ? 1 : 0);
    this.count += brought;
    if (brought > 0) {
      this.#first ??= now;
      this.#last = now;
    }
  }

  // Tokens whose text is held back come with a later pass, or after the last one.
  #pass({tokens = [], tree = null}) {
    if (tree) this.passes.push(tree);
    const pass = this.passes.length - 1;
    for (const {text, source} of tokens) {
      this.tokens.push({begin: this.#covered, source: source ?? null, pass});
      this.#covered += text.length;
    }
  }

  // Tokens a second: the server's count where it is known, else how fast they have come here.
  speed() {
    if (this.speculation?.tokens_per_second) return this.speculation.tokens_per_second;
    const seconds = this.#last - this.#first;
    return seconds > 0 ? (this.count - 1) / seconds : null;
  }

  // How many tokens the answer has, by the server's word where there is one.
  length() {
    return this.usage?.completion_tokens ?? this.speculation?.tokens ?? this.count;
  }

  // Who guessed, in runs [length, source]: what is kept of the tokens when the trees are gone.
  runs() {
    const runs = [];
    this.tokens.forEach(({begin, source}, i) => {
      const length = (this.tokens[i + 1]?.begin ?? this.#covered) - begin;
      if (runs.at(-1)?.[1] === source) runs.at(-1)[0] += length;
      else runs.push([length, source]);
    });
    return runs;
  }
}

// Tokens as paint() wants them, from runs that were kept.
export function tokensOfRuns(runs) {
  let begin = 0;
  return (runs ?? []).map(([length, source]) => {
    const token = {begin, source, pass: null};
    begin += length;
    return token;
  });
}

// Why an answer is not whole, in plain words; null if it is. `limit` is the most tokens that were asked for.
export function whyCut(answer, limit) {
  const after = `after ${answer.length()} tokens`;
  if (answer.text === '' && answer.finish !== 'stopped' && answer.finish !== 'broken') return 'The model ended its answer at once.';
  switch (answer.finish) {
    case 'length':
    case 'max_tokens': return `Cut at the limit of ${limit} tokens. Raise “Most tokens” in the settings for longer answers.`;
    case 'context_full': return `Cut ${after}: the model’s context is full. Begin a new conversation.`;
    case 'timed_out': return `Cut ${after}: the server gives no answer more time than this.`;
    case 'stopped': return `Stopped by you ${after}.`;
    case 'broken': return `Cut ${after}: the connection ended.`;
    default: return null;
  }
}
