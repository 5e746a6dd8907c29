// The server as the page sees it: its models, and a stream of what it answers. Errors come as ApiError, in plain words.
import {objects} from './sse.js';

const kLongestWait = 120;  // seconds that a request waits for a model which is being loaded

export class ApiError extends Error {
  // `status` is the HTTP status; 0: the server was not reached.
  constructor(status, message, {field = null, retryAfter = null} = {}) {
    super(message);
    this.status = status;
    this.field = field;
    this.retryAfter = retryAfter;
  }
}

// What to tell a person, and what they can do.
export function inPlainWords(error) {
  const said = error.message ? ` The server says: ${error.message}` : '';
  const again = error.retryAfter ? `Try again in ${seconds(error.retryAfter)}.` : 'Try again in a moment.';
  switch (error.status) {
    case 0: return 'The server cannot be reached. Is `coppice serve` still running?';
    case 401: return 'The server wants an API key, and the one given is not right.';
    case 404: return `The server does not have this model.${said}`;
    case 408: return 'The request took too long to arrive. Try again.';
    case 413: return `The conversation is too long for the server. Begin a new one, or shorten it.${said}`;
    case 429: return `The server is full. ${again}`;
    case 503: return `The server is not ready. ${again}${said}`;
    default:
  }
  if (error instanceof ApiError && error.status >= 500) return `The server failed.${said}`;
  if (error instanceof ApiError) return `The server cannot do this.${said}`;
  return `The page failed: ${error.message}. Load it again; if that does not help, please report it.`;
}

function seconds(count) {
  return count === 1 ? '1 second' : `${count} seconds`;
}

export class Server {
  key = '';  // API key, if the server asks for one

  async models() {
    const response = await this.#ask('v1/models', {});
    return (await response.json()).data ?? [];
  }

  // Chunks of the answer to a request for /v1/chat/completions, as they come. Returns whether the stream ended as it should.
  // While the model is loaded, waits and asks again; `onWait(seconds)` is told.
  async* chat(request, signal, onWait = () => {}) {
    const body = JSON.stringify({...request, stream: true, stream_options: {include_usage: true}});
    for (let waited = 0;;) {
      try {
        const response = await this.#ask('v1/chat/completions', {method: 'POST', body, signal});
        return yield* this.#chunks(response);
      } catch (error) {
        const wait = error.status === 503 && error.retryAfter;
        if (!wait || waited + wait > kLongestWait) throw error;
        waited += wait;
        onWait(wait);
        await pause(wait, signal);
      }
    }
  }

  async* #chunks(response) {
    const stream = objects(response.body);
    for (;;) {
      const {done, value} = await stream.next().catch(rethrowAsUnreached);
      if (done) return value;
      if (value.error) throw new ApiError(500, value.error.message ?? String(value.error));
      yield value;
    }
  }

  // Paths are relative: the server may stand behind another one, under a folder of that.
  async #ask(path, options) {
    const headers = {...(options.body && {'Content-Type': 'application/json'}), ...(this.key && {Authorization: `Bearer ${this.key}`})};
    const response = await fetch(path, {...options, headers}).catch(rethrowAsUnreached);
    if (!response.ok) throw await errorOf(response);
    return response;
  }
}

// A stop by the person stays what it is; all else that fetch throws means that there is no connection.
function rethrowAsUnreached(error) {
  throw error.name === 'AbortError' || error instanceof SyntaxError ? error : new ApiError(0, error.message);
}

async function errorOf(response) {
  const body = await response.json().catch(() => null);
  const retryAfter = Number(response.headers.get('Retry-After')) || null;
  const said = body?.error?.message ?? (typeof body?.error === 'string' ? body.error : '');
  return new ApiError(response.status, said, {field: body?.error?.param ?? null, retryAfter});
}

function pause(count, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, count * 1000);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, {once: true});
  });
}
