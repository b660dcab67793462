// The list of jobs and the one that is looked at.

import * as api from './api.js';
import {bytes, duration, el, select} from './dom.js';
import {trainingView} from './training.js';

const active = (job) => job.state === 'queued' || job.state === 'running';
/** What an ended job looks like does not change; of the others, progress and time do. */
const key = (job) => `${job.id} ${job.state} ${job.name} ${active(job) ? '' : job.seconds}`;
const called = (job) => job.name || job.title;
const again = (job) => ['failed', 'cancelled', 'interrupted'].includes(job.state);
const kinds = {compare: 'Comparison', plan: 'Plan', generate: 'Images', train: 'Training'};

// Not known of one that waits, nor of one whose server was killed.
const elapsed = (job) => (job.state === 'queued' || (!active(job) && job.seconds === 0) ? '' : duration(job.seconds));

function row(job, selected, choose) {
  return el('li', {}, el('button', {type: 'button', 'aria-current': String(job.id === selected), 'data-id': String(job.id), onclick: () => choose(job.id)},
    el('span', {class: 'id'}, String(job.id)), el('span', {class: `state ${job.state}`}, job.state),
    el('span', {class: 'title', title: job.title}, `${kinds[job.kind]}: ${called(job)}`),
    el('span', {class: 'when'}, elapsed(job))));
}

function progress(job) {
  if (!active(job)) return null;
  if (job.state === 'queued')
    return el('p', {class: 'bar'}, job.ahead > 0 ? `Waits behind ${job.ahead} other${job.ahead > 1 ? 's' : ''}.` : 'Begins next.');
  const known = job.progress;
  const left = known?.done > 0 ? `, about ${duration((job.seconds * (known.count - known.done)) / known.done)} left` : '';
  const lane = {held: ', held while another long one has its turn', background: ', in the background'}[job.lane] ?? '';
  const label = (known ? `${known.done} of ${known.count} ${known.what}${job.lane === 'held' ? '' : left}` : 'running') + lane;
  return el('div', {class: 'bar'},
    el('progress', {'aria-label': label, ...(known ? {max: String(known.count), value: String(known.done)} : {})}), el('span', {}, label));
}

function images(job) {
  const result = job.result ?? {};
  const steps = result.checkpoint?.match(/step-0*([0-9]+)\.ckpt$/)?.[1];
  const fact = (term, value) => (value === undefined ? [] : [el('dt', {}, term), el('dd', {}, value)]);
  return el('figure', {},
    el('img', {src: api.fileOf(job, 'images.png'), alt: `${job.title}: a grid of generated images`}),
    el('dl', {class: 'big'}, ...fact('Images', result.images && String(result.images)), ...fact('Generation time', result.total_s && duration(result.total_s)),
      ...fact('Images a second', result.images_per_s && Math.round(result.images_per_s).toLocaleString('en')),
      ...fact('Memory planned', result.memory_bytes && bytes(result.memory_bytes)),
      ...fact('Memory used at most', bytes(job.peak_memory_bytes)), ...fact('Model', result.model), ...fact('Backend', result.backend),
      ...fact('Device', result.device), ...fact('Trained for', steps && `${Number(steps).toLocaleString('en')} steps`)));
}

const fileNames = {'report.html': 'Report in a tab of its own', 'result.json': 'Result (JSON)', 'table.txt': 'Table (text)', 'images.png': 'Images (PNG)',
                   'samples.png': 'Last pictures (PNG)', 'losses.csv': 'Losses (CSV)',
                   'step-trace.json': 'Step trace (JSON)', 'prediction.json': 'Plan for the clouds (JSON)', 'input.json': 'Input (JSON)', 'log.txt': 'Log'};

/** What stays once the job has ended: report, table, images. */
async function outcome(job) {
  const parts = [];
  if (job.files.length > 0)
    parts.push(el('ul', {class: 'files'}, ...Object.keys(fileNames).filter((name) => job.files.includes(name)).map((name) =>
      el('li', {}, el('a', {href: api.fileOf(job, name), target: '_blank', rel: 'noopener'}, fileNames[name])))));
  if (job.files.includes('images.png') && job.state === 'done') parts.push(images(job));
  const report = job.files.includes('report.html');
  if (report) parts.push(el('iframe', {src: api.fileOf(job, 'report.html'), title: `Report of job ${job.id}`}));
  if (job.files.includes('table.txt')) {
    const table = el('pre', {tabindex: '0', 'aria-label': 'Result as a table'}, await api.textOf(job, 'table.txt'));
    parts.push(report ? el('details', {}, el('summary', {}, 'Table'), el('div', {class: 'inside'}, table)) : table);
  }
  if (job.note) parts.push(el('p', {class: 'hint'}, job.note));
  return parts;
}

/** Compares an ended comparison or plan with another one; nothing if there is none. */
function comparison(job, known) {
  const others = known.filter((one) => one.id !== job.id && one.kind === job.kind && one.state === 'done');
  if (job.state !== 'done' || !['compare', 'plan'].includes(job.kind) || others.length === 0) return null;
  const other = select([['', 'Compare with …'], ...others.map((one) => [String(one.id), `${one.id}: ${called(one)}`])], '');
  other.setAttribute('aria-label', 'Compare with another job');
  const shown = el('pre', {tabindex: '0', hidden: true, 'aria-label': 'What differs'});
  other.addEventListener('change', async () => {
    shown.hidden = other.value === '';
    if (!shown.hidden) shown.textContent = await api.differences(other.value, job.id).catch((refused) => refused.message);
  });
  return el('div', {class: 'versus'}, other, shown);
}

/** A field for the user's name of a job. */
function naming(job, rename) {
  const input = el('input', {type: 'text', value: job.name, placeholder: job.title, maxlength: '100', 'aria-label': 'Name of this job', autocomplete: 'off'});
  return el('form', {class: 'naming', onsubmit: (event) => {
    event.preventDefault();
    rename(input.value.trim());
  }}, input, el('button', {type: 'submit'}, 'Name'));
}

export function jobsView({list, empty, detail, ended, connection, generate}) {
  const trained = trainingView(generate);
  let selected = 0, shown = '', drawn = '', listed = '', watched = new Set(), known = [], timer;

  const facts = (job) => {
    const all = [`asked for ${job.created.replace('T', ' ').replace('Z', ' UTC')}`];
    if (elapsed(job)) all.push(`${elapsed(job)} elapsed`);
    if (job.peak_memory_bytes > 0) all.push(`${bytes(job.peak_memory_bytes)} memory at most`);
    return el('p', {class: 'facts'}, ...all.map((fact) => el('span', {}, fact)));
  };

  async function show(job) {
    if (job.id !== selected) return;
    // A running job is updated in place, so that a button that is being pressed stays.
    if (active(job) && drawn === key(job)) {
      detail.querySelector('.facts').replaceWith(facts(job));
      detail.querySelector('.bar').replaceWith(progress(job));
      if (job.kind === 'train') await trained(job);
      return;
    }
    const act = async (what) => {
      await what(job.id).catch((refused) => alertIn(refused.message));
      await poll();
    };
    const message = el('p', {class: 'error', role: 'alert', hidden: !job.message}, job.message);
    const name = naming(job, async (text) => act((id) => api.name(id, text)));
    const forget = async (one) => {
      if (!window.confirm(`Forget job ${one.id}? Its files are removed.`)) return;
      const failed = await api.forget(one.id).then(() => '', (refused) => refused.message);
      if (failed !== '') return alertIn(failed);
      detail.hidden = true;
      [selected, shown, drawn] = [0, '', ''];
      await poll();
    };
    const alertIn = (words) => {
      message.textContent = words;
      message.hidden = false;
    };
    const rest = [...(job.kind === 'train' ? [await trained(job)] : []), ...(active(job) ? [] : await outcome(job))];
    if (job.id !== selected) return;
    const focused = detail.contains(document.activeElement) ? document.activeElement.dataset.action : undefined;
    detail.replaceChildren(
      el('div', {class: 'head'}, el('h2', {id: 'detail-title'}, `${kinds[job.kind]} ${job.id}: ${called(job)}`),
        el('span', {class: `state ${job.state}`, role: 'status'}, job.state),
        el('div', {class: 'actions'},
          active(job) ? el('button', {type: 'button', 'data-action': 'cancel', onclick: () => act(api.cancel)}, 'Cancel') : null,
          again(job) ? el('button', {type: 'button', 'data-action': 'again', onclick: () => act(api.again)}, 'Run again') : null,
          active(job) ? null : el('button', {type: 'button', 'data-action': 'forget', onclick: () => forget(job)}, 'Forget'))),
      facts(job), ...[progress(job), message, comparison(job, known)].filter(Boolean), ...rest, name);
    detail.hidden = false;
    drawn = key(job);
    if (focused) detail.querySelector(`[data-action="${focused}"]`)?.focus();
  }

  function drawList() {
    const looks = known.map((job) => `${key(job)} ${job.id === selected}`).join();
    if (looks === listed) {
      for (const [i, when] of list.querySelectorAll('.when').entries()) when.textContent = elapsed(known[i]);
      return;
    }
    listed = looks;
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
    list.replaceChildren(...known.map((job) => row(job, selected, choose)));
    if (focused) list.querySelector(`[data-id="${focused}"]`)?.focus();
    empty.hidden = known.length > 0;
  }

  async function choose(id) {
    selected = id;
    shown = drawn = '';
    drawList();
    await poll();
  }

  async function poll() {
    clearTimeout(timer);
    try {
      known = await api.jobs();
      drawList();
      for (const job of known)
        if (watched.has(job.id) && !active(job)) {
          watched.delete(job.id);
          ended(await api.job(job.id));
        }
      const now = known.find((job) => job.id === selected);
      // One that has ended is drawn once: its report must not be loaded anew.
      if (now && (active(now) || shown !== key(now))) {
        const job = await api.job(now.id);
        shown = key(job);
        await show(job);
      }
      connection.textContent = '';
    } catch (refused) {
      connection.textContent = refused.status === 403 ? 'The server was started anew: open the address that it has printed.' : refused.message;
    }
    clearTimeout(timer);
    timer = setTimeout(poll, known.some(active) ? 500 : 3000);
  }

  return {
    start: async () => {
      await poll();
      if (known.length > 0) await choose(known[0].id);
    },
    /** A job that was just queued. */
    follow: async (job) => {
      watched.add(job.id);
      await choose(job.id);
      if (detail.getBoundingClientRect().left < list.closest('main').clientWidth / 4) detail.scrollIntoView({block: 'nearest'});  // below the form
    },
  };
}
