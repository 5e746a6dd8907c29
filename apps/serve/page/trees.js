// The tree of a pass as the server sends it ({nodes: [{text, parent, value, sources, taken}], drawn}), laid out to be drawn, and
// said in words. Text runs from left to right: a child begins where its parent ends, so every path reads as a continuation.
// What was taken is the first line; each other branch has a line of its own below the node it leaves.

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
  const boxes = [];
  let [rows, width] = [0, 0];
  // A stack of its own, not recursion: trees are at most 255 deep by the server's word, and that is only a word.
  const waiting = root ? [{node: root, from: null, first: true}] : [];
  while (waiting.length) {
    const {node, from, first} = waiting.pop();
    if (!first) rows += 1;
    const label = shown(node.text);
    const note = node.root || node.drawn ? '' : percent(node.value);
    const wide = 2 * kMargin + [...label].length * kLetter + (note ? note.length * kSmall + kMargin : 0);
    const x = from ? from.x + from.width + kGap : 1;
    const box = {x, y: rows * kRow + kRow / 2, width: wide, label, note, node, from};
    boxes.push(box);
    width = Math.max(width, x + wide);
    const next = node.children.map((child, i) => ({node: child, from: box, first: i === 0}));
    waiting.push(...next.reverse());  // the first child is drawn next, on this line
  }
  return {nodes: boxes, width: width + 1, height: (rows + 1) * kRow};
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
