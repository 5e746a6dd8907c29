// Elements from descriptions. A description is {tag, attrs, children} or {text}; no text ever becomes markup, and nothing sets a
// style attribute (the page's Content-Security-Policy would refuse it).

const kSvg = 'http://www.w3.org/2000/svg';

// A description. Children may be strings, descriptions, or lists of them; null ones are left out.
export function h(tag, attrs = {}, ...children) {
  const all = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return {tag, attrs, children: all.map((child) => (typeof child === 'string' ? {text: child} : child))};
}

export function make(node, svg = false) {
  if (node instanceof Node) return node;
  if (node.tag === undefined) return document.createTextNode(node.text);
  const inside = svg || node.tag === 'svg';
  const element = inside ? document.createElementNS(kSvg, node.tag) : document.createElement(node.tag);
  for (const [name, value] of Object.entries(node.attrs ?? {})) set(element, name, value);
  for (const child of node.children ?? []) element.append(make(child, inside));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === 'function') element.addEventListener(name.slice(2).toLowerCase(), value);  // onClick
  else element.setAttribute(name, value === true ? '' : String(value));
}

// A new element at once; the same arguments as h().
export function element(tag, attrs, ...children) {
  return make(h(tag, attrs, ...children));
}

// Makes the children of `parent` what `after` describes, where they are what `before` describes: what is equal is not touched,
// so a growing text costs what has grown, and what a person has selected in it stays selected.
export function patch(parent, before, after) {
  const common = Math.min(before.length, after.length);
  for (let i = 0; i < common; i++) {
    const [old, now] = [before[i], after[i]];
    if (old.tag !== now.tag || !sameAttributes(old.attrs, now.attrs)) parent.childNodes[i].replaceWith(make(now));
    else if (now.tag !== undefined) patch(parent.childNodes[i], old.children ?? [], now.children ?? []);
    else if (old.text !== now.text) parent.childNodes[i].data = now.text;
  }
  while (parent.childNodes.length > after.length) parent.lastChild.remove();
  for (let i = common; i < after.length; i++) parent.append(make(after[i]));
}

function sameAttributes(a = {}, b = {}) {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

// At most one call a frame; now() does it at once. A hidden page draws no frames, so it is drawn a few times a second by a timer.
export function onFrame(draw) {
  let waiting = null;
  const run = () => {
    waiting = null;
    draw();
  };
  return {
    soon() {
      if (waiting !== null) return;
      if (document.hidden) {
        const timer = setTimeout(run, 250);
        waiting = () => clearTimeout(timer);
      } else {
        const frame = requestAnimationFrame(run);
        waiting = () => cancelAnimationFrame(frame);
      }
    },
    now() {
      waiting?.();
      run();
    },
  };
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);  // no clipboard where the page is served without TLS to another machine
  }
}

function copyBySelection(text) {
  const field = element('textarea', {class: 'visually-hidden', 'aria-label': 'text to copy'});
  field.value = text;
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const copied = document.execCommand('copy');
  field.remove();
  focused?.focus();
  return copied;
}
