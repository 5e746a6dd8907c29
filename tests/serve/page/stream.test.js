// Server-sent events cut anywhere, and what the server's errors are in plain words.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {ApiError, inPlainWords, Server} from '../page/api.js';
import {EventReader, objects} from '../page/sse.js';

const kStream = 'data: {"a": "ü"}\r\n\r\n: a remark\nevent: x\ndata: {"b":\ndata: 2}\n\ndata:{"c":3}\n\ndata: [DONE]\n\n';
const kObjects = [{a: 'ü'}, {b: 2}, {c: 3}];

// A body that arrives in pieces of `size` bytes.
function body(text, size) {
  const bytes = new TextEncoder().encode(text);
  return new ReadableStream({
    start(controller) {
      for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
      controller.close();
    },
  });
}

async function readAll(stream) {
  const found = [];
  for (;;) {
    const {done, value} = await stream.next();
    if (done) return {found, whole: value};
    found.push(value);
  }
}

test('events come out whole, however the bytes are cut, inside characters too', async () => {
  for (let size = 1; size < 12; size++) {
    assert.deepEqual(await readAll(objects(body(kStream, size))), {found: kObjects, whole: true}, `${size} bytes a piece`);
  }
});

test('a line end of two letters may be cut in two', () => {
  const reader = new EventReader();
  assert.deepEqual([...reader.feed('data: 1\r'), ...reader.feed('\n\r'), ...reader.feed('\n')], ['1']);
});

test('a stream that ends before [DONE] says so', async () => {
  assert.deepEqual(await readAll(objects(body('data: {"a":1}\n\n', 4))), {found: [{a: 1}], whole: false});
});

// Answers to fetch, one after the other; what was asked is in `asked`.
function serverThatSays(...responses) {
  const asked = [];
  globalThis.fetch = async (path, options) => {
    asked.push({path, ...options});
    const next = responses.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  return asked;
}

const refusal = (status, error, headers = {}) => new Response(JSON.stringify({error}), {status, headers});

test('a request streams, with usage and the key', async () => {
  const asked = serverThatSays(new Response(body(kStream, 5)));
  const server = new Server();
  server.key = 'secret';
  assert.deepEqual(await readAll(server.chat({model: 'm'})), {found: kObjects, whole: true});
  assert.deepEqual(JSON.parse(asked[0].body), {model: 'm', stream: true, stream_options: {include_usage: true}});
  assert.equal(asked[0].headers.Authorization, 'Bearer secret');
});

test('while the model is loaded the page waits and asks again', async () => {
  const asked = serverThatSays(refusal(503, {message: 'loading'}, {'Retry-After': '0.01'}), new Response(body(kStream, 50)));
  const waits = [];
  const {found} = await readAll(new Server().chat({}, undefined, (seconds) => waits.push(seconds)));
  assert.equal(found.length, 3);
  assert.equal(asked.length, 2);
  assert.deepEqual(waits, [0.01]);
});

test('errors are said in plain words, with what the server says', async () => {
  serverThatSays(refusal(429, {message: 'full'}, {'Retry-After': '3'}), refusal(400, {message: 'top_k must be whole', param: 'top_k'}),
    refusal(401, {message: 'no'}), new TypeError('failed to fetch'), new Response('<html>', {status: 500}));
  const words = [];
  for (let i = 0; i < 5; i++) await new Server().models().catch((error) => words.push(inPlainWords(error)));
  assert.deepEqual(words, [
    'The server is full. Try again in 3 seconds.',
    'The server cannot do this. The server says: top_k must be whole',
    'The server wants an API key, and the one given is not right.',
    'The server cannot be reached. Is `coppice serve` still running?',
    'The server failed.',
  ]);
});

test('an error in the middle of a stream ends it', async () => {
  serverThatSays(new Response(body('data: {"a":1}\n\ndata: {"error":{"message":"out of memory"}}\n\n', 50)));
  const chunks = new Server().chat({});
  assert.deepEqual((await chunks.next()).value, {a: 1});
  await assert.rejects(chunks.next(), (error) => error instanceof ApiError && /out of memory/.test(inPlainWords(error)));
});
