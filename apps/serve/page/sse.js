// Server-sent events as OpenAI's API has them: lines `data: {json}`, an empty line ends an event, `[DONE]` ends the stream.

// Turns pieces of a stream, cut anywhere, into the data of its events.
export class EventReader {
  #rest = '';  // of the last piece: a line that has not ended
  #data = [];  // data lines of the event that has not ended

  // The data of the events that end in this piece.
  feed(piece) {
    const text = this.#rest + piece;
    // A carriage return at the end may be the first half of a line's end.
    const whole = text.endsWith('\r') ? text.slice(0, -1) : text;
    const lines = whole.split(/\r\n|\n|\r/);
    this.#rest = lines.pop() + text.slice(whole.length);
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line) {
    if (line === '') {
      const event = this.#data.join('\n');
      const any = this.#data.length > 0;
      this.#data = [];
      return any ? [event] : [];
    }
    const field = /^data:(?: )?(.*)$/s.exec(line);
    if (field) this.#data.push(field[1]);
    return [];  // comments, and fields that this API does not use
  }
}

// The objects of a response's stream, up to `[DONE]`. Returns true at `[DONE]`, false where the stream broke off before it.
export async function* objects(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events = new EventReader();
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return false;
      for (const data of events.feed(decoder.decode(value, {stream: true}))) {
        if (data === '[DONE]') return true;
        yield JSON.parse(data);
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
