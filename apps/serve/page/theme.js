// Before the first paint: the theme that was chosen the last time, so that nothing flashes. Not a module, for modules come later.
'use strict';
(() => {
  let theme = null;
  try {
    theme = window.localStorage.getItem('coppice.theme');
  } catch {
    // No storage: the system's theme.
  }
  if (theme === '"light"' || theme === '"dark"') document.documentElement.dataset.theme = JSON.parse(theme);
})();
