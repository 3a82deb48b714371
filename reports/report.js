'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const pick = id => document.getElementById(id);
  const page = 100;
  let shown = page;
  document.documentElement.classList.add('scripted');

  // A case: kernel, name, flags, provenance, source, outcome, bytes compared, bytes different, message.
  const fields = {
    kernel: c => [c[0]],
    flag: c => c[2],
    outcome: c => [c[5]],
    provenance: c => [c[3]],
  };
  const names = {
    kernel: data.kernels, flag: data.flags, outcome: data.outcomes, provenance: data.provenances,
  };
  const texts = data.cases.map(c => [data.kernels[c[0]], c[1], ...c[2].map(f => data.flags[f]),
    data.sources[c[4]], c[8] || ''].join(' ').toLowerCase());

  for (const field of Object.keys(fields)) {
    const select = pick('by-' + field);
    const sorted = names[field].map((name, i) => [name, i]);
    if (field === 'flag') sorted.sort((a, b) => a[0] < b[0] ? -1 : 1);
    for (const [name, i] of sorted) select.add(new Option(name, i));
    select.addEventListener('change', restart);
  }
  pick('by-text').addEventListener('input', restart);
  pick('reset').addEventListener('click', () => {
    for (const field of Object.keys(fields)) pick('by-' + field).value = '';
    pick('by-text').value = '';
    restart();
  });
  pick('more').addEventListener('click', () => {
    shown += page * 5;
    draw();
  });

  function matching() {
    const wanted = Object.keys(fields).map(f => [fields[f], pick('by-' + f).value]).filter(w => w[1] !== '');
    const words = pick('by-text').value.toLowerCase().split(/\s+/).filter(w => w !== '');
    return data.cases.map((c, i) => i).filter(i =>
      wanted.every(([of, value]) => of(data.cases[i]).includes(Number(value))) &&
      words.every(w => texts[i].includes(w)));
  }

  function cell(row, text, kind) {
    const made = row.insertCell();
    made.textContent = text;
    if (kind) made.className = kind;
  }

  function draw() {
    const found = matching();
    const body = pick('cases').tBodies[0];
    body.replaceChildren();
    for (const i of found.slice(0, shown)) {
      const c = data.cases[i];
      const row = body.insertRow();
      cell(row, data.kernels[c[0]], 'name');
      cell(row, c[1], 'name');
      cell(row, data.signs[c[5]] + ' ' + data.outcomes[c[5]], data.kinds[c[5]]);
      cell(row, data.provenances[c[3]]);
      cell(row, c[7].toLocaleString('en'), 'number');
      cell(row, c[6].toLocaleString('en'), 'number');
      cell(row, c[2].map(f => data.flags[f]).join(', '), 'name');
      cell(row, [data.sources[c[4]], c[8]].filter(t => t).join(': '), 'name');
    }
    const in_all = new Set(found);
    for (const one of document.querySelectorAll('[data-case]')) one.hidden = !in_all.has(Number(one.dataset.case));
    const n = x => x.toLocaleString('en');
    pick('count').textContent = n(found.length) + ' of ' + n(data.cases.length) + ' cases match' +
      (found.length > shown ? '; the first ' + n(shown) + ' are listed' : '');
    pick('more').hidden = found.length <= shown;
  }

  function restart() {
    shown = page;
    draw();
  }

  for (const table of document.querySelectorAll('.matrix')) {
    table.addEventListener('click', event => {
      const at = event.target.closest('td[data-f]');
      if (!at) return;
      pick('by-kernel').value = at.dataset.k;
      pick('by-flag').value = at.dataset.f;
      restart();
      pick('find').scrollIntoView();
    });
  }

  for (const button of document.querySelectorAll('.command button')) {
    button.addEventListener('click', async () => {
      const code = button.parentNode.querySelector('code');
      let done = false;
      try {
        await navigator.clipboard.writeText(code.textContent);
        done = true;
      } catch {
        getSelection().selectAllChildren(code);
        done = document.execCommand('copy');
      }
      button.textContent = done ? 'Copied' : 'Selected';
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
  }

  let opened = [];
  addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    for (const one of opened) one.open = true;
  });
  addEventListener('afterprint', () => {
    for (const one of opened) one.open = false;
  });
  draw();
})();
