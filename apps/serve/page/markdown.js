// Markdown in blocks: paragraphs, headings, lists, quotes, code, tables, rules. A model's text is read as a model writes it: a line
// end inside a paragraph is kept, and an inner list may be indented by two. What comes out are descriptions of elements (dom.js)
// whose leaves say where in the source they stand. Nothing in the text is ever taken for HTML.
import {inline} from './inline.js';

const kDeepest = 10;  // lists and quotes inside each other; deeper ones are text
const kFence = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const kHeading = /^ {0,3}(#{1,6})(?=[ \t]|$)(.*)$/;
const kRule = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const kQuote = /^ {0,3}> ?/;
const kItem = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)(?=\S)|[ \t]*$)/;
const kTableRule = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

// The blocks of a text: descriptions, each with `begin`, the place in the source of its first line.
export function markdown(text, offset = 0) {
  let from = offset;
  const lines = text.split('\n').map((line) => {
    const here = from;
    from += line.length + 1;
    return {text: line, from: here};
  });
  return blocks(lines, 0);
}

// A text that grows. Only its last block can still change, so only that is read again.
export class MarkdownStream {
  #text = '';
  #open = 0;  // where the blocks begin that may still change

  append(text) {
    this.#text += text;
  }

  // {fixed, open}: blocks that have become final since the last call, and those after them as they are now.
  take() {
    const found = markdown(this.#text.slice(this.#open), this.#open);
    let count = 0;
    while (found[count + 1] && this.#settled(found[count + 1])) count += 1;
    if (count > 0) this.#open = found[count].begin;
    return {fixed: found.slice(0, count), open: found.slice(count)};
  }

  // Whether the lines are whole that make this block one of its own: half a line may yet turn out to belong to the one before.
  #settled(block) {
    const first = this.#text.indexOf('\n', block.begin);
    return first >= 0 && (block.attrs.class !== 'table' || this.#text.indexOf('\n', first + 1) >= 0);
  }
}

// Each reader takes the lines and where it may begin, and gives {node, next} or null. The last one takes anything.
const kReaders = [fence, heading, rule, quote, list, table, indented, paragraph];

function blocks(lines, depth) {
  const found = [];
  for (let at = 0; at < lines.length;) {
    if (blank(lines[at])) {
      at += 1;
      continue;
    }
    let block = null;
    for (const reader of depth < kDeepest ? kReaders : [paragraph]) {
      block = reader(lines, at, depth);
      if (block) break;
    }
    found.push({...block.node, begin: lines[at].from});
    at = block.next;
  }
  return found;
}

function fence(lines, at) {
  const open = kFence.exec(lines[at].text);
  if (!open) return null;
  const close = new RegExp(`^ {0,3}\\${open[1][0]}{${open[1].length},}[ \\t]*$`);
  const indent = indentOf(lines[at].text);
  let next = at + 1;
  const inside = [];
  while (next < lines.length && !close.test(lines[next].text)) inside.push(stripped(lines[next++], indent));
  return {node: codeBlock(inside, open[2]), next: Math.min(next + 1, lines.length)};
}

function indented(lines, at) {
  if (indentOf(lines[at].text) < 4) return null;
  let next = at;
  while (next < lines.length && (blank(lines[next]) || indentOf(lines[next].text) >= 4)) next += 1;
  while (blank(lines[next - 1])) next -= 1;
  return {node: codeBlock(lines.slice(at, next).map((line) => stripped(line, 4)), ''), next};
}

function heading(lines, at) {
  const found = kHeading.exec(lines[at].text);
  if (!found) return null;
  const raw = found[2];
  const text = raw.trim().replace(/(^|[ \t])#+$/, '').trimEnd();  // closing marks are none of its text
  const from = lines[at].from + lines[at].text.length - raw.trimStart().length;
  // One level for all: above it stand the page's own headings, and models skip levels. Size tells the rest.
  return {node: node('h4', inline([{text, from}]), {class: `level-${found[1].length}`}), next: at + 1};
}

function rule(lines, at) {
  return kRule.test(lines[at].text) ? {node: node('hr', []), next: at + 1} : null;
}

function quote(lines, at, depth) {
  let next = at;
  const inside = [];
  for (; next < lines.length && kQuote.test(lines[next].text); next++) {
    inside.push(cut(lines[next], kQuote.exec(lines[next].text)[0].length));
  }
  return next > at ? {node: node('blockquote', blocks(inside, depth + 1)), next} : null;
}

function list(lines, at, depth) {
  const first = item(lines[at]);
  if (!first) return null;
  const items = [];
  let [next, loose] = [at, false];
  while (next < lines.length) {
    const here = item(lines[next]);
    if (!here || here.kind !== first.kind) break;
    const own = itemLines(lines, next, here);
    const gap = blank(own.at(-1));
    items.push(blocks(own, depth + 1));
    next += own.length;
    loose ||= gap && next < lines.length && item(lines[next])?.kind === first.kind;
  }
  const tight = (block) => (!loose && block.tag === 'p' ? block.children : [block]);
  const children = items.map((inside) => node('li', inside.flatMap(tight)));
  const ordered = first.number !== null;
  return {node: node(ordered ? 'ol' : 'ul', children, ordered && first.number !== 1 ? {start: first.number} : {}), next};
}

// The marker of a list's item: its kind, its number, and how far its text is indented; or null.
function item(line) {
  const found = kItem.exec(line.text);
  if (!found || kRule.test(line.text)) return null;
  const [all, before, marker, space] = found;
  const wide = (space?.length ?? 1) > 4;  // then the text is code, indented
  const indent = before.length + marker.length + (wide ? 1 : space?.length ?? 1);
  const number = /\d/.test(marker) ? Number.parseInt(marker, 10) : null;
  return {kind: marker.at(-1), number, indent, least: Math.min(indent, before.length + 2), length: wide ? indent : all.length};
}

// The lines of one item without its marker and indentation, empty lines after it included.
function itemLines(lines, at, marker) {
  const own = [cut(lines[at], marker.length)];
  for (let next = at + 1; next < lines.length; next++) {
    const line = lines[next];
    const inside = blank(line) || indentOf(line.text) >= marker.least;
    const lazy = !inside && !blank(own.at(-1)) && !item(line) && !begins(lines, next);  // a paragraph's next line, not indented
    if (!inside && !lazy) break;
    own.push(stripped(line, marker.indent));
  }
  return own;
}

function table(lines, at) {
  if (!heads(lines, at)) return null;
  const align = cells(lines[at + 1]).map(({text}) => alignment(text));
  const row = (line, tag) => node('tr', cells(line).slice(0, align.length).map((cell, i) =>
    node(tag, inline([cell]), align[i] ? {class: align[i]} : {})));
  let next = at + 2;
  const body = [];
  while (next < lines.length && lines[next].text.includes('|') && !blank(lines[next])) body.push(row(lines[next++], 'td'));
  const parts = [node('thead', [row(lines[at], 'th')]), ...(body.length ? [node('tbody', body)] : [])];
  const frame = {class: 'table', tabindex: '0', role: 'group', 'aria-label': 'table'};  // it may scroll, so the keyboard must get there
  return {node: node('div', [node('table', parts)], frame), next};
}

function heads(lines, at) {
  if (!lines[at].text.includes('|') || at + 1 >= lines.length || !kTableRule.test(lines[at + 1].text)) return false;
  return cells(lines[at]).length === cells(lines[at + 1]).length;
}

function alignment(text) {
  if (/^:.*:$/.test(text)) return 'centre';
  return text.endsWith(':') ? 'right' : '';
}

// The cells of a row. A bar that is escaped, or inside code, is part of its cell.
function cells(line) {
  const found = [];
  let begin = 0;
  let code = false;
  const take = (end) => {
    const raw = line.text.slice(begin, end);
    found.push({text: raw.trim(), from: line.from + begin + raw.length - raw.trimStart().length});
    begin = end + 1;
  };
  for (let at = 0; at < line.text.length; at++) {
    if (line.text[at] === '\\') at += 1;
    else if (line.text[at] === '`') code = !code;
    else if (line.text[at] === '|' && !code) take(at);
  }
  take(line.text.length);
  if (found.length > 1 && found[0].text === '') found.shift();  // the bars at both ends are no cells
  if (found.length > 1 && found.at(-1).text === '') found.pop();
  return found;
}

function paragraph(lines, at) {
  let next = at + 1;
  while (next < lines.length && !blank(lines[next]) && !begins(lines, next)) next += 1;
  const own = lines.slice(at, next).map((line) => stripped(line, Infinity));
  return {node: node('p', inline(own)), next};
}

// Whether a block begins here that ends a paragraph.
function begins(lines, at) {
  const {text} = lines[at];
  const found = item(lines[at]);
  const listed = found !== null && kItem.exec(text)[3] !== undefined && (found.number ?? 1) === 1;
  return listed || kFence.test(text) || kHeading.test(text) || kRule.test(text) || kQuote.test(text) || heads(lines, at);
}

function codeBlock(lines, language) {
  const leaves = lines.flatMap((line) => [{text: `${line.text}\n`, from: line.from}]);
  const head = node('div', [
    node('span', [{text: language || 'text'}]),
    node('button', [{text: 'Copy'}], {type: 'button', 'data-action': 'copy-code', 'aria-label': `Copy this ${language || 'text'}`}),
  ], {class: 'code-head'});
  const body = node('pre', [node('code', leaves)], {tabindex: '0', 'aria-label': `${language || 'text'}, as code`, role: 'group'});
  return node('div', [head, body], {class: 'code'});
}

function node(tag, children, attrs = {}) {
  return {tag, attrs, children};
}

function blank(line) {
  return line.text.trim() === '';
}

function cut(line, count) {
  return {text: line.text.slice(count), from: line.from + count};
}

// How many columns of space a line begins with; a tab reaches to the next multiple of four.
function indentOf(text) {
  let columns = 0;
  for (const letter of text) {
    if (letter === ' ') columns += 1;
    else if (letter === '\t') columns += 4 - (columns % 4);
    else break;
  }
  return columns;
}

// A line without its first `columns` of space.
function stripped(line, columns) {
  let [count, seen] = [0, 0];
  while (seen < columns && (line.text[count] === ' ' || line.text[count] === '\t')) {
    seen += line.text[count] === '\t' ? 4 - (seen % 4) : 1;
    count += 1;
  }
  return cut(line, count);
}
