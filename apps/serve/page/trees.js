// The tree of a pass as the server sends it ({nodes: [{text, parent, value, sources, taken}], drawn}), laid out to be drawn, and
// said in words. Text runs from left to right: a child begins where its parent ends, so every path reads as a continuation.
// What was taken is the first line; other branches lie below it, each below the node that it leaves.

const kLetter = 7.4;   // width of a letter of the tree's font, in px (page.css: 12px, monospace)
const kSmall = 6;      // and of a value's
const kMargin = 7;     // inside a node
const kGap = 30;       // between a node and its child
const kLongest = 16;   // letters of a node's text
export const kRow = 30;
export const kHeight = 22;

// Text with its spaces and line ends to be seen; at most kLongest letters.
export function shown(text) {
  const seen = text.replaceAll(' ', '·').replaceAll('\n', '⏎').replaceAll('\t', '⇥').replaceAll('\r', '␍');
  const letters = [...seen];
  return letters.length > kLongest ? `${letters.slice(0, kLongest - 1).join('')}…` : seen || '∅';
}

export function percent(value) {
  if (value > 0 && value < 0.005) return '<1%';
  return `${Math.round(value * 100)}%`;
}

// Nodes with their children, what was taken first, then by value; the token that the model drew itself is the last child of the
// path that was taken.
export function branches(tree) {
  const nodes = tree.nodes.map((node, index) => ({
    text: node.text, value: node.value, sources: node.sources ?? [], taken: index === 0 || node.taken === true,
    root: index === 0, drawn: false, parent: node.parent, children: [],
  }));
  for (const node of nodes.slice(1)) nodes[node.parent].children.push(node);
  for (const node of nodes) node.children.sort((a, b) => b.taken - a.taken || b.value - a.value);
  if (nodes.length === 0) return null;
  let end = nodes[0];
  while (end.children[0]?.taken) end = end.children[0];
  if (drew(tree)) {
    end.children.unshift({text: tree.drawn, value: 1, sources: [], taken: true, root: false, drawn: true, children: []});
  }
  return nodes[0];
}

// {nodes: [{x, y, width, label, note, node, from}], width, height}: boxes in px, `from` the parent's box or null.
export function layout(tree) {
  const root = branches(tree);
  const page = {boxes: [], used: []};
  if (root) placeLine(page, lineFrom(root, null), 0);
  const width = Math.max(0, ...page.boxes.map((box) => box.x + box.width));
  return {nodes: page.boxes, width: width + 1, height: page.used.length * kRow};
}

// A node and its first child, and its first child, ...: boxes on one line, which has no height yet.
function lineFrom(node, from) {
  const line = [];
  for (let at = node, left = from; at; at = at.children[0]) {
    const label = shown(at.text);
    const note = at.root || at.drawn ? '' : percent(at.value);
    const width = 2 * kMargin + [...label].length * kLetter + (note ? note.length * kSmall + kMargin : 0);
    left = {x: left ? left.x + left.width + kGap : 1, y: 0, width, label, note, node: at, from: left};
    line.push(left);
  }
  return line;
}

// Puts a line into a row, and what leaves it into rows below: the last branch first, so that hardly a branch crosses another.
function placeLine(page, line, row) {
  take(page, row, {begin: line[0].x, end: line.at(-1).x + line.at(-1).width, owner: line[0].from});
  for (const box of line) box.y = row * kRow + kRow / 2;
  page.boxes.push(...line);
  for (const box of line.toReversed()) {
    for (const child of box.node.children.slice(1)) {
      const branch = lineFrom(child, box);
      const below = rowFor(page, branch, row);
      for (let between = row + 1; between < below; between++) take(page, between, stem(branch));
      take(page, below, stem(branch));
      placeLine(page, branch, below);
    }
  }
}

// The first row below `row` where a branch has room.
function rowFor(page, branch, row) {
  const reach = {...stem(branch), end: branch.at(-1).x + branch.at(-1).width};
  let below = row + 1;
  while (!isFree(page, below, reach)) below += 1;
  return below;
}

// Where a branch leaves its parent: stems of one parent may share a place.
function stem(branch) {
  return {begin: branch[0].x - kGap, end: branch[0].x - 1, owner: branch[0].from};
}

function isFree({used}, row, {begin, end, owner}) {
  return (used[row] ?? []).every((other) => other.end < begin || other.begin > end || (other.owner === owner && other.end < begin + kGap));
}

function take({used}, row, place) {
  (used[row] ??= []).push(place);
}

// {guessed, taken, tokens}: how many nodes were guessed, how many of them taken, how many tokens the pass brought.
export function counts(tree) {
  const guesses = tree.nodes.slice(1);
  const taken = guesses.filter((node) => node.taken).length;
  return {guessed: guesses.length, taken, tokens: taken + (drew(tree) ? 1 : 0)};
}

// Whether the model drew a token of its own below what was taken.
function drew(tree) {
  return tree.drawn !== null && tree.drawn !== undefined;
}

// A node in words.
export function said(node) {
  const text = `“${shown(node.text)}”`;
  if (node.root) return `${text}, the last token so far`;
  if (node.drawn) return `${text}, drawn by the model itself`;
  const who = node.sources.length ? ` by ${node.sources.join(' and ')}` : '';
  return `${text}, ${percent(node.value)}, guessed${who}, ${node.taken ? 'taken' : 'not taken'}`;
}
