// Puts the page together.

import * as api from './api.js';
import {forms} from './forms.js';
import {jobsView} from './jobs.js';
import {refreshChoices} from './uploads.js';

const at = (id) => document.getElementById(id);

// api.js has the token by now; the address, which is shown and remembered, needs it no more.
if (location.search !== '') history.replaceState(null, '', '/' + location.hash);

/** Returns the function that shows a tab. */
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
  return choose;
}

const kinds = ['compare', 'plan', 'train', 'generate'];
const showTab = tabs(kinds);
let made = {}, choices;
const view = jobsView({
  list: at('jobs'), empty: at('no-jobs'), detail: at('detail'), connection: at('connection'),
  ended: (job) => {
    // A job whose input was refused, or that no GPU can hold: that is the form's matter.
    if (job.state === 'failed' && [2, 3].includes(job.exit_code)) made[job.kind].showError(job.message);
    if (job.kind === 'train') refreshChoices(choices).catch(() => {});
  },
  /** Asks for images of what a training has written so far. */
  generate: async (checkpoint) => {
    await refreshChoices(choices);
    made.generate.choose(checkpoint);
    showTab('generate', true);
  },
});
try {
  // Each part of the page that shows choices adds a listener, which is called when they are others.
  choices = {...(await api.choices()), listeners: []};
  made = forms(choices, async (form) => view.follow(await api.submit(form)));
  for (const kind of kinds) at(`panel-${kind}`).append(made[kind].whole);
} catch (refused) {
  at('connection').textContent = refused.message;
}
await view.start();
