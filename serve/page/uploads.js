// Files of the user's: sent to the server, chosen like what comes with the program, and forgotten.

import * as api from './api.js';
import {el, field} from './dom.js';

/** Fetches the choices anew, and lets every form show them. */
export async function refreshChoices(choices) {
  Object.assign(choices, await api.choices());
  for (const listener of choices.listeners) listener();
}

/** A field to send a file of this kind, and a list of those sent. `added(key)` gets what a form calls the new file. */
export function ownFiles(choices, kind, label, added) {
  const input = el('input', {type: 'file', accept: '.json,application/json'});
  const problem = el('p', {class: 'problem', role: 'alert', hidden: true});
  const list = el('ul', {class: 'own'});
  const attempt = async (work) => {
    problem.hidden = true;
    try {
      await work();
    } catch (refused) {
      problem.textContent = refused.message;
      problem.hidden = false;
    }
  };
  const show = () => {
    list.replaceChildren(...choices.uploads.filter((one) => one.kind === kind).map((one) => el('li', {}, el('span', {}, one.name),
      el('button', {type: 'button', 'aria-label': `Forget ${one.name}`, onclick: () => attempt(async () => {
        await api.forgetUpload(one.id);
        await refreshChoices(choices);
      })}, 'Forget'))));
  };
  input.addEventListener('change', () => attempt(async () => {
    const [file] = input.files;
    if (!file) return;
    const {key} = await api.upload(kind, file.name, await file.text());
    input.value = '';
    await refreshChoices(choices);
    added(key);
  }));
  choices.listeners.push(show);
  show();
  return el('div', {class: 'files-of-mine'}, field(label, input), problem, list);
}
