// Puts the page together.

import * as api from './api.js';
import {forms} from './forms.js';
import {jobsView} from './jobs.js';

const at = (id) => document.getElementById(id);

// api.js has the token by now; the address, which is shown and remembered, needs it no more.
if (location.search !== '') history.replaceState(null, '', '/' + location.hash);

function tabs(kinds) {
  const choose = (kind, focus) => {
    for (const one of kinds) {
      const chosen = one === kind;
      at(`tab-${one}`).setAttribute('aria-selected', String(chosen));
      at(`tab-${one}`).tabIndex = chosen ? 0 : -1;
      at(`panel-${one}`).hidden = !chosen;
    }
    if (focus) at(`tab-${kind}`).focus();
    history.replaceState(null, '', `#${kind}`);
  };
  for (const [i, kind] of kinds.entries()) {
    at(`tab-${kind}`).addEventListener('click', () => choose(kind));
    at(`tab-${kind}`).addEventListener('keydown', (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (step) choose(kinds[(i + step + kinds.length) % kinds.length], true);
      if (event.key === 'Home') choose(kinds[0], true);
      if (event.key === 'End') choose(kinds.at(-1), true);
    });
  }
  const wanted = location.hash.slice(1);
  choose(kinds.includes(wanted) ? wanted : kinds[0]);
}

const kinds = ['compare', 'plan', 'generate'];
tabs(kinds);
let made = {};
const view = jobsView({
  list: at('jobs'), empty: at('no-jobs'), detail: at('detail'), connection: at('connection'),
  // A job whose input was refused: that is the form's matter.
  ended: (job) => job.state === 'failed' && job.exit_code === 2 && made[job.kind].showError(job.message),
});
try {
  const choices = await api.choices();
  made = forms(choices, async (form) => view.follow(await api.submit(form)));
  for (const kind of kinds) at(`panel-${kind}`).append(made[kind].whole);
} catch (refused) {
  at('connection').textContent = refused.message;
}
await view.start();
