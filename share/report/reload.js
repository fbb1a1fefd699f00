'use strict';
/* Of a page that is served: loads it again once the runs' files have changed, with its switches as they were. */
(() => {
  const shown = document.querySelector('meta[name=accel-state]').content;
  const words = document.getElementById('served'), usual = words.textContent;
  const form = document.getElementById('controls'), key = 'accel-report';

  /* ---- What the reader chose ---- */

  const inputs = () => form === null ? [] : [...form.querySelectorAll('input')];
  const details = () => [...document.querySelectorAll('details')];
  const nameOf = one => one.querySelector('summary').textContent.replace(/[0-9]+/g, ''); /* numbers of rows grow */

  const keep = () => sessionStorage.setItem(key, JSON.stringify({
    inputs: inputs().map(input => [input.name, input.value, input.checked]),
    open: details().filter(one => one.open).map(nameOf)
  }));

  const restore = () => {
    const kept = JSON.parse(sessionStorage.getItem(key) || 'null');
    sessionStorage.removeItem(key);
    if (kept === null) return;
    for (const [name, value, checked] of kept.inputs)
      for (const input of inputs()) {
        if (input.name !== name) continue;
        if (input.type === 'range') input.value = value;
        else if (input.value === value) input.checked = checked;
      }
    for (const one of details()) one.open = kept.open.includes(nameOf(one));
    if (form !== null) form.dispatchEvent(new Event('input'));
  };

  /* ---- Whether there is something new ---- */

  /* Nobody is interrupted who reads a number. */
  const isBusy = () => document.hidden || document.querySelector('.cursor') !== null;

  const look = async () => {
    if (isBusy()) return;
    try {
      const answer = await fetch('state', {cache: 'no-store'});
      const now = await answer.text();
      words.textContent = usual;
      if (!answer.ok || now === shown) return;
      keep();
      location.reload();
    } catch (error) {
      words.textContent = 'The server has ended: the page is as it was at last.';
    }
  };

  restore();
  setInterval(look, 2000);
  document.addEventListener('visibilitychange', look);
})();
