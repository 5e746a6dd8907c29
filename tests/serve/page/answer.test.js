// An answer put together from chunks: who guessed what, trees laid out, texts compared.
import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Answer, tokensOfRuns, whyCut} from '../page/answer.js';
import {verdict} from '../page/answer_view.js';
import {markdown} from '../page/markdown.js';
import {paint} from '../page/sources.js';
import {counts, layout, said, shown} from '../page/trees.js';
import {leaves, spelled} from './helpers.js';

const kTree = {
  nodes: [
    {text: 'def', parent: -1, value: 1, sources: [], taken: true},
    {text: ' f', parent: 0, value: 0.5, sources: ['lookup'], taken: false},
    {text: ' add', parent: 0, value: 0.3, sources: ['ngram', 'lookup'], taken: true},
    {text: '(', parent: 2, value: 0.25, sources: ['lookup'], taken: true},
    {text: '(', parent: 1, value: 0.2, sources: ['ngram'], taken: false},
    {text: ')', parent: 3, value: 0.001, sources: ['lookup'], taken: false},
  ],
  drawn: 'a',
};

const chunk = (content, coppice, finish = null) => ({choices: [{delta: {content}, finish_reason: finish}], coppice});
const token = (text, source = null) => ({text, source});

function answer() {
  const it = new Answer();
  it.take({choices: [{delta: {role: 'assistant'}}]}, 0);
  it.take(chunk(' **a', {tokens: [token(' **'), token('a', 'ngram')], tree: kTree}), 1);
  it.take(chunk('dd**', {tokens: [token('dd', 'lookup'), token('**', 'lookup')], tree: kTree}), 3);
  it.take({choices: [{delta: {}, finish_reason: 'length', stop_reason: 'max_tokens'}]}, 3);
  it.take({choices: [], usage: {completion_tokens: 4}}, 3);
  return it;
}

test('text, tokens, trees and the end are put together', () => {
  const it = answer();
  assert.equal(it.text, ' **add**');
  assert.deepEqual(it.tokens.map(({begin, source, pass}) => [begin, source, pass]),
    [[0, null, 0], [3, 'ngram', 0], [4, 'lookup', 1], [6, 'lookup', 1]]);
  assert.equal(it.passes.length, 2);
  assert.deepEqual([it.finish, it.length()], ['max_tokens', 4]);
  assert.equal(it.speed(), 1.5);
  it.take({choices: [], speculation: {tokens_per_second: 99}}, 3);
  assert.equal(it.speed(), 99);
});

test('what is kept of the tokens paints the same text the same way', () => {
  const it = answer();
  assert.deepEqual(it.runs(), [[3, null], [1, 'ngram'], [4, 'lookup']]);
  const classes = (tokens) => paint(markdown(it.text)[0], tokens)[0].children[0].children.map((span) => [span.attrs.class, span.children[0].text]);
  assert.deepEqual(classes(it.tokens), [['token by-ngram', 'a'], ['token by-lookup', 'dd']]);
  assert.deepEqual(classes(tokensOfRuns(it.runs())), classes(it.tokens));
});

test('painting changes no letter, and each says who guessed it in words', () => {
  const it = answer();
  const painted = markdown(it.text).flatMap((block) => paint(block, it.tokens));
  assert.equal(leaves(painted).map(({text}) => text).join(''), 'add');
  assert.match(spelled(painted), /title="guessed by ngram, pass 1" data-pass="0">a</);
});

test('a token without text of its own takes no letter', () => {
  const it = new Answer();
  it.take(chunk('ü!', {tokens: [token('', 'lookup'), token('ü', 'ngram'), token('!')], tree: kTree}), 0);
  assert.deepEqual(leaves(markdown(it.text).flatMap((block) => paint(block, it.tokens))).map(({text}) => text), ['ü', '!']);
  assert.deepEqual(it.runs(), [[0, 'lookup'], [1, 'ngram'], [1, null]]);
});

test('answers that are cut say why', () => {
  assert.match(whyCut(answer(), 4), /limit of 4 tokens/);
  assert.match(whyCut({finish: 'context_full', length: () => 9}, 400), /after 9 tokens: .*context is full/);
  assert.match(whyCut({finish: 'stopped', length: () => 3}, 400), /Stopped by you after 3/);
  assert.equal(whyCut({finish: 'end_of_text', length: () => 3}, 400), null);
});

test('two answers are compared letter by letter', () => {
  const one = {...answer(), text: 'abc', finish: 'end_of_text', speed: () => 10, length: () => 2};
  const fast = {...one, speed: () => 25};
  assert.deepEqual([verdict({plain: one, guessed: fast}).same, verdict({plain: one, guessed: fast}).times], [true, 2.5]);
  assert.match(verdict({plain: one, guessed: {...fast, text: 'abd'}}).words, /differ from letter 3 on/);
  assert.equal(verdict({plain: one, guessed: {...fast, finish: 'max_tokens'}}).same, false);
  assert.equal(verdict({plain: one, guessed: {...fast, finish: 'stopped'}}).same, null);
});

test('the path taken is the first line of a tree, branches lie below it', () => {
  const {nodes, width, height} = layout(kTree);
  const line = (y) => nodes.filter((box) => box.y === y).sort((a, b) => a.x - b.x).map((box) => box.label);
  const rows = [...new Set(nodes.map(({y}) => y))].sort((a, b) => a - b);
  assert.deepEqual(rows.map(line), [['def', '·add', '(', 'a'], ['·f', '(', ')']]);
  for (const box of nodes) {
    assert.ok(box.x + box.width <= width && box.y < height);
    if (box.from) assert.ok(box.x > box.from.x + box.from.width);
  }
});

test('no two boxes of a tree lie over each other', () => {
  const texts = [' a', 'long_identifier', '(', '\n', ' if'];
  for (let seed = 1; seed < 200; seed++) {
    let state = seed;
    const next = (below) => (state = (state * 48271) % 2147483647) % below;
    const nodes = [{text: 'x', parent: -1, value: 1, taken: true}];
    for (let i = 1; i < 20; i++) nodes.push({text: texts[next(5)], parent: next(i), value: 1 / i, sources: ['lookup'], taken: false});
    const boxes = layout({nodes, drawn: 'y'}).nodes;
    assert.equal(boxes.length, 21);
    for (const a of boxes) {
      for (const b of boxes) assert.ok(a === b || a.y !== b.y || a.x + a.width < b.x || b.x + b.width < a.x, `seed ${seed}`);
    }
  }
});

test('a tree is counted and said in words', () => {
  assert.deepEqual(counts(kTree), {guessed: 5, taken: 2, tokens: 3});
  assert.deepEqual(layout(kTree).nodes.map(({node}) => said(node)).slice(0, 4), ['“def”, the last token so far',
    '“·add”, 30%, guessed by ngram and lookup, taken', '“(”, 25%, guessed by lookup, taken', '“a”, drawn by the model itself']);
  assert.equal(said({text: 'x', value: 0.001, sources: ['lookup'], taken: false}), '“x”, <1%, guessed by lookup, not taken');
});

test('spaces and line ends of a token can be seen, and long ones are cut', () => {
  assert.equal(shown(' a\n\t'), '·a⏎⇥');
  assert.equal(shown(''), '∅');
  assert.equal([...shown('x'.repeat(50))].length, 16);
});
