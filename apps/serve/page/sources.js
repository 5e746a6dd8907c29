// Who guesses, and how that looks: each kind of drafter has a place (a colour, a kind of line) in page.css, the same in the text, in
// the tree and in the bars. Colours are told apart by people who see few of them, and never stand alone: lines differ too.

const kPlaces = ['lookup', 'ngram', 'stage', 'model', 'head', 'self'];

// The class of page.css for a drafter's name.
export function placeOf(source) {
  if (source === null || source === undefined) return 'by-target';
  const known = kPlaces.indexOf(/^\w*/.exec(source)[0]);
  return known < 0 ? 'by-other' : `by-${kPlaces[known]}`;
}

export function whoGuessed(source) {
  return source === null || source === undefined ? 'drawn by the model, guessed by nobody' : `guessed by ${source}`;
}

// Leaves {text, from} cut at the borders of tokens: each piece is a span that says who guessed it. What no token covers stays as it
// is. Returns a new description.
export function paint(node, tokens) {
  if (node.tag === undefined) return node.from === undefined ? [node] : pieces(node, tokens);
  return [{...node, children: node.children.flatMap((child) => paint(child, tokens))}];
}

function pieces({text, from}, tokens) {
  if (text === '' || tokens.length === 0) return [{text}];
  const found = [];
  const end = from + text.length;
  let at = from;
  for (let i = tokenAt(tokens, from); i < tokens.length && at < end; i++) {
    const stop = Math.min(tokens[i + 1]?.begin ?? end, end);
    if (stop <= at) continue;  // it has no text of its own
    found.push(piece(text.slice(at - from, stop - from), tokens[i]));
    at = stop;
  }
  return found;
}

function piece(text, {source, pass}) {
  const title = pass === null ? whoGuessed(source) : `${whoGuessed(source)}, pass ${pass + 1}`;
  const attrs = {class: `token ${placeOf(source)}`, title, ...(pass !== null && {'data-pass': String(pass)})};
  return {tag: 'span', attrs, children: [{text}]};
}

// The last token that begins at `place` or before.
function tokenAt(tokens, place) {
  let [low, high] = [0, tokens.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tokens[middle].begin <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
