// Markdown inside a paragraph, a heading or a cell: emphasis, code, links. A text becomes descriptions of elements (dom.js) whose
// leaves {text, from} say where in the source they stand, so that each letter can be traced to the token that brought it.
//
// Emphasis follows CommonMark's rule of delimiter runs. HTML is text like any other. Pictures are links: nothing is fetched.

const kPunctuation = /[\p{P}\p{S}]/u;
const kEscapable = /[!-/:-@[-`{-~]/;
const kUrl = /https?:\/\/[^\s<>"]+/y;
const kAngleUrl = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
const kDestination = /\(\s*(?:<([^<>\n]*)>|((?:[^\s()]|\([^\s()]*\))*))(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;
const kSchemes = ['http:', 'https:', 'mailto:'];
const kLongestLink = 2000;  // letters of a link's text; a bracket that closes later is none of its own

// Descriptions of what `lines` hold. A line is {text, from}: its text, and the place in the source where that begins.
export function inline(lines) {
  return new Inline(lines).parse(0);
}

// The address if it is safe to follow, else null. Relative ones are not: they would lead into this server.
export function safeAddress(address) {
  try {
    return kSchemes.includes(new URL(address).protocol) ? address : null;
  } catch {
    return null;
  }
}

class Inline {
  constructor(lines) {
    this.lines = lines;
    this.text = lines.map((line) => line.text).join('\n');
    let begin = 0;
    this.begins = lines.map((line) => {
      const here = begin;
      begin += line.text.length + 1;
      return here;
    });
  }

  // From `begin` to `end`; links do not nest.
  parse(begin, end = this.text.length, inLink = false) {
    const out = new Output(this);
    let plain = begin;  // what has been seen from here on is text
    let at = begin;
    while (at < end) {
      const found = this.#special(at, end, inLink);
      if (!found) {
        at += 1;
        continue;
      }
      out.text(plain, at);
      out.add(found);
      plain = at = found.end;
    }
    out.text(plain, end);
    return out.finish();
  }

  // What begins at `at` and is more than a letter: {end, nodes} or {end, delimiter}; else null.
  #special(at, end, inLink) {
    switch (this.text[at]) {
      case '\\': return this.#escape(at, end);
      case '`': return this.#code(at, end);
      case '*':
      case '_':
      case '~': return this.#delimiter(at, end);
      case '!':
      case '[': return inLink ? null : this.#link(at, end);
      case '<': return inLink ? null : this.#address(kAngleUrl, at, end);
      case 'h': return inLink ? null : this.#address(kUrl, at, end);
      case '\n': return {end: at + 1, nodes: [{tag: 'br', attrs: {}, children: []}]};
      default: return null;
    }
  }

  #escape(at, end) {
    if (at + 1 >= end || !kEscapable.test(this.text[at + 1])) return null;
    return {end: at + 2, nodes: this.leaves(at + 1, at + 2)};
  }

  #code(at, end) {
    const length = run(this.text, at, end);
    for (let close = at + length; close < end;) {
      close = this.text.indexOf('`', close);
      if (close < 0 || close >= end) break;
      const closing = run(this.text, close, end);
      if (closing === length) return {end: close + length, nodes: [node('code', this.#codeLeaves(at + length, close))]};
      close += closing;
    }
    return {end: at + length, nodes: this.leaves(at, at + length)};
  }

  // One space is dropped at both ends, so that code can begin with a backtick; line ends become spaces.
  #codeLeaves(begin, end) {
    const inner = this.text.slice(begin, end);
    const padded = inner.length > 2 && /^[ \n].*[ \n]$/s.test(inner) && inner.trim() !== '';
    const leaves = [];
    for (let at = begin + padded; at < end - padded;) {
      const line = this.text.indexOf('\n', at);
      const stop = line < 0 ? end - padded : Math.min(line, end - padded);
      leaves.push(...this.leaves(at, stop));
      if (stop < end - padded) leaves.push({text: ' ', from: this.source(stop)});
      at = stop + 1;
    }
    return leaves;
  }

  #delimiter(at, end) {
    const letter = this.text[at];
    const length = run(this.text, at, end);
    if (letter === '~' && length !== 2) return {end: at + length, nodes: this.leaves(at, at + length)};
    const [before, after] = [this.text[at - 1] ?? ' ', this.text[at + length] ?? ' '];
    const [spaceBefore, spaceAfter] = [/\s/.test(before), /\s/.test(after)];
    const [markBefore, markAfter] = [kPunctuation.test(before), kPunctuation.test(after)];
    const left = !spaceAfter && (!markAfter || spaceBefore || markBefore);
    const right = !spaceBefore && (!markBefore || spaceAfter || markAfter);
    const words = letter !== '_';  // an underscore inside a word is part of it
    const opens = left && (words || !right || markBefore);
    const closes = right && (words || !left || markAfter);
    return {end: at + length, delimiter: {letter, length, left: length, begin: at, opens, closes}};
  }

  // [text](address) and ![text](address).
  #link(at, end) {
    const picture = this.text[at] === '!';
    const open = at + picture;
    if (this.text[open] !== '[') return null;
    const close = this.#closing(open, Math.min(end, open + kLongestLink));
    if (close < 0) return null;
    kDestination.lastIndex = close + 1;
    const found = kDestination.exec(this.text);
    if (!found || kDestination.lastIndex > end) return null;
    const inside = this.parse(open + 1, close, true);
    const label = inside.length ? inside : [{text: picture ? 'picture' : 'link', from: this.source(at)}];
    return {end: kDestination.lastIndex, nodes: anchor(found[1] ?? found[2], label)};
  }

  // The bracket that closes the one at `open`, or -1.
  #closing(open, end) {
    let depth = 0;
    for (let at = open; at < end; at++) {
      if (this.text[at] === '\\') at += 1;
      else if (this.text[at] === '[') depth += 1;
      else if (this.text[at] === ']' && --depth === 0) return at;
    }
    return -1;
  }

  // An address written out, in angle brackets or bare.
  #address(form, at, end) {
    if (form === kUrl && /[\w/]/.test(this.text[at - 1] ?? ' ')) return null;
    form.lastIndex = at;
    const found = form.exec(this.text);
    if (!found || form.lastIndex > end) return null;
    if (form === kAngleUrl) return {end: form.lastIndex, nodes: anchor(found[1], this.leaves(at + 1, form.lastIndex - 1))};
    const address = withoutSentenceEnd(found[0]);
    return {end: at + address.length, nodes: anchor(address, this.leaves(at, at + address.length))};
  }

  // The place in the source of a place in the joined text.
  source(at) {
    let line = this.begins.length - 1;
    while (line > 0 && this.begins[line] > at) line -= 1;
    return this.lines[line].from + at - this.begins[line];
  }

  leaves(begin, end) {
    return begin < end ? [{text: this.text.slice(begin, end), from: this.source(begin)}] : [];
  }
}

// Nodes in order, with delimiter runs among them until their partner comes.
class Output {
  #nodes = [];
  #openers = [];  // delimiters that stand in #nodes, the last one last

  constructor(source) {
    this.source = source;
  }

  text(begin, end) {
    this.#nodes.push(...this.source.leaves(begin, end));
  }

  add({nodes, delimiter}) {
    if (nodes) this.#nodes.push(...nodes);
    else this.#delimiter(delimiter);
  }

  #delimiter(closer) {
    while (closer.closes && closer.left > 0) {
      const place = this.#openers.findLastIndex((opener) => fits(opener, closer));
      if (place < 0) break;
      this.#close(place, closer);
    }
    if (closer.left === 0) return;
    this.#nodes.push({delimiter: closer});
    if (closer.opens) this.#openers.push(closer);
  }

  #close(place, closer) {
    const opener = this.#openers[place];
    this.#openers.length = place + 1;  // those in between stay text
    const taken = Math.min(2, opener.left, closer.left);
    const begin = this.#nodes.findLastIndex((one) => one.delimiter === opener);
    const inside = this.#settled(this.#nodes.splice(begin + 1));
    opener.left -= taken;
    closer.left -= taken;
    closer.begin += taken;
    if (opener.left === 0) {
      this.#nodes.pop();
      this.#openers.pop();
    }
    const tag = closer.letter === '~' ? 'del' : taken === 2 ? 'strong' : 'em';
    this.#nodes.push(node(tag, inside));
  }

  // Delimiters without a partner are text.
  #settled(nodes) {
    return nodes.flatMap(({delimiter, ...one}) =>
      (delimiter ? this.source.leaves(delimiter.begin, delimiter.begin + delimiter.left) : [one]));
  }

  finish() {
    return this.#settled(this.#nodes);
  }
}

// CommonMark's rule, that of three included: `**a*b**` is strong.
function fits(opener, closer) {
  if (opener.letter !== closer.letter) return false;
  if (!opener.closes && !closer.opens) return true;
  return (opener.length + closer.length) % 3 !== 0 || (opener.length % 3 === 0 && closer.length % 3 === 0);
}

function run(text, at, end) {
  let stop = at + 1;
  while (stop < end && text[stop] === text[at]) stop += 1;
  return stop - at;
}

function node(tag, children, attrs = {}) {
  return {tag, attrs, children};
}

// A link, or only its text where the address is not safe.
function anchor(address, children) {
  const href = safeAddress(address);
  if (href === null) return children;
  return [node('a', children, {href, title: href, target: '_blank', rel: 'noopener noreferrer nofollow'})];
}

// A full stop after an address ends the sentence, a bracket closes what was open before it.
function withoutSentenceEnd(address) {
  let text = address;
  for (;;) {
    const bracket = text.endsWith(')') && text.split('(').length < text.split(')').length;
    if (!bracket && !/[.,;:!?'*_~\]]$/.test(text)) return text;
    text = text.slice(0, -1);
  }
}
