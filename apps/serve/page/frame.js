// What is around the conversation: the line of notices, the panels at both sides, theme and colours.
import {element} from './dom.js';

const kNarrow = matchMedia('(max-width: 70rem)');  // as in page.css: there the panels lie over the conversation
const kSmall = matchMedia('(max-width: 44rem)');
const kPanels = ['list', 'panel'];
const byId = (id) => document.getElementById(id);

// What has just happened, said aloud by screen readers too; with a button {words, act} if there is something to do about it.
export function notice(words, button = null) {
  const parts = words ? [element('span', {}, words)] : [];
  if (button) parts.push(element('button', {type: 'button', onClick: button.act}, button.words));
  byId('notice').replaceChildren(...parts);
}

// Shows or hides a panel, "list" or "panel".
function toggle(id, open = !isOpen(id)) {
  byId(id).classList.toggle(kNarrow.matches ? 'open' : 'closed', kNarrow.matches ? open : !open);
  tellPanels();
}

function isOpen(id) {
  return kNarrow.matches ? byId(id).classList.contains('open') : !byId(id).classList.contains('closed');
}

function tellPanels() {
  for (const id of kPanels) byId(`${id}-button`).setAttribute('aria-expanded', String(isOpen(id)));
}

// Panels that lie over the conversation; the keyboard goes back to where they were opened. Whether there were any.
export function closeOverlays() {
  const open = kPanels.filter((id) => kNarrow.matches && isOpen(id));
  for (const id of open) {
    const inside = byId(id).contains(document.activeElement);
    toggle(id, false);
    if (inside) byId(`${id}-button`).focus();
  }
  return open.length > 0;
}

export function startPanels() {
  for (const id of kPanels) byId(`${id}-button`).addEventListener('click', () => toggle(id));
  kNarrow.addEventListener('change', tellPanels);
  byId('passes').open = !kSmall.matches;  // there is little room
  tellPanels();
}

// Theme, and whether tokens are painted by who guessed them; both are kept.
export function startLooks(storage) {
  const theme = byId('theme');
  theme.value = storage.get('theme', '');
  theme.addEventListener('change', () => {
    storage.set('theme', theme.value);
    if (theme.value) document.documentElement.dataset.theme = theme.value;
    else delete document.documentElement.dataset.theme;
  });
  showColours(storage.get('colours', true));
  byId('colours').addEventListener('click', () => {
    const on = byId('messages').dataset.colours !== 'on';
    storage.set('colours', on);
    showColours(on);
  });
}

function showColours(on) {
  byId('messages').dataset.colours = on ? 'on' : 'off';
  byId('colours').setAttribute('aria-pressed', String(on));
}

// A field as high as its text, up to what page.css allows.
export function fit(field) {
  field.style.setProperty('height', 'auto');
  field.style.setProperty('height', `${field.scrollHeight + 2}px`);
}

// The API key, kept as long as the tab is open.
export const sessionKey = {
  get() {
    try {
      return sessionStorage.getItem('coppice.key') ?? '';
    } catch {
      return '';
    }
  },
  set(key) {
    try {
      sessionStorage.setItem('coppice.key', key);
    } catch {
      // Then it is asked for again when the page is loaded again.
    }
  },
};
