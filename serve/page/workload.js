// What is trained: model or own trace, batch, a step measured by hand, dataset, how long; and the memory that it needs.

import {bytes, el, field, fieldset, number, select, text} from './dom.js';
import {ownFiles} from './uploads.js';

// What a form begins with: at most the usual batch, and what a GPU of that memory holds: P100, V100 and T4 have it, with
// one of which a comparison begins.
const kUsualBatch = 64, kMemoryAtFirst = 16 * 2 ** 30;

/** The batch that a workload begins with, and why it is not the usual one; `memory`: what a GPU of it needs. */
function firstBatch(one) {
  const fits = (value) => one.memory_bytes[value] <= kMemoryAtFirst;
  const usual = one.batches.filter((value) => value <= kUsualBatch);
  const value = usual.filter(fits).at(-1) ?? one.batches[0];
  const most = usual.at(-1);
  if (most === undefined || value === most) return {value, why: ''};
  const room = bytes(kMemoryAtFirst);
  return {value, why: `${fits(value) ? `Batch ${value} to begin with: it fits a GPU of ${room}.` : `Even batch ${value} may not fit a GPU of ${room}.`} Batch ${most} needs up to ${bytes(one.memory_bytes[most])}.`};
}

const groups = [['Recorded step by step', 'recorded:'], ['Counted from layers', 'layers:'], ['Yours', 'upload:']];

/** The GPUs that can be rented, by name, with their memory. */
function gpusOf(choices) {
  const known = new Map();
  for (const provider of choices.providers)
    for (const one of provider.instances) if (one.kind === 'gpu') known.set(one.gpu, one.memory_bytes);
  return [...known].sort((a, b) => a[1] - b[1] || a[0].localeCompare(b[0]));
}

function memoryTable(choices, needed) {
  const row = ([name, memory]) => {
    const share = needed / memory;
    return el('tr', {class: share > 1 ? 'off' : ''}, el('td', {}, name), el('td', {}, bytes(memory)),
      el('td', {}, el('meter', {min: '0', max: '1', high: '0.9', value: String(Math.min(1, share)), 'aria-label': `${name}: share of the memory`})),
      el('td', {}, share > 1 ? 'too small' : share < 0.01 ? '< 1 %' : `${Math.round(100 * share)} %`));
  };
  return el('div', {class: 'scroll'}, el('table', {class: 'memory'}, el('thead', {}, el('tr', {}, ...['GPU', 'memory', '', 'needed'].map((name) => el('th', {}, name)))),
    el('tbody', {}, ...gpusOf(choices).map(row))));
}

/** `changed()` is called when model or batch are others. needs(): bytes that a GPU must hold; undefined: not known. */
export function workload(choices, units, changed = () => {}) {
  const models = el('select');
  const about = el('p', {class: 'hint'}), memory = el('span', {}), memoryRows = el('div', {class: 'inside'});
  const batch = el('select');
  const step = text('', 'e.g. 0.11s'), stepUnit = select([['step', 'a step'], ['images_per_second', 'images a second']]);
  const on = select(choices.measured_on, 'V100'), stepBatch = number(64, 1, 1 << 24);
  const dataset = select([...choices.datasets.map((one) => one.name), ['', 'other']], choices.datasets[0].name);
  const images = number(0, 1, 1e12), size = number(0, 1, 1e12, 'any');
  const amount = number(20, 1, 1e12), unit = select(units);
  unit.setAttribute('aria-label', 'Unit of the target');
  const current = () => choices.workloads.find((item) => item.trace === models.value);
  const measured = () => step.value.trim() !== '';
  const needs = () => (measured() ? undefined : current()?.memory_bytes[batch.value]);

  const showModels = () => {
    const before = models.value;
    models.replaceChildren();
    for (const [label, prefix] of groups) {
      const found = choices.workloads.filter((item) => item.trace.startsWith(prefix));
      if (found.length > 0)
        models.append(el('optgroup', {label}, ...found.map((one) => el('option', {value: one.trace}, one.label ?? one.trace.slice(prefix.length)))));
    }
    if (choices.workloads.some((one) => one.trace === before)) models.value = before;
    else {
      models.value = (choices.workloads.find((one) => one.dataset === 'cifar-10') ?? choices.workloads[0]).trace;
      showModel();
    }
  };
  const showMemory = () => {
    batch.disabled = measured();
    const needed = needs();
    memory.textContent = needed === undefined ? 'GPU memory: not known for a step measured by hand' : `GPU memory: ${bytes(needed)} in training`;
    memoryRows.replaceChildren(...(needed === undefined ? [] : [memoryTable(choices, needed)]));
    changed();
  };
  const showModel = () => {
    const one = current();
    const first = firstBatch(one);
    about.textContent = [one.about, first.why].filter((part) => part).join('. ');
    batch.replaceChildren(...one.batches.map((value) => el('option', {value: String(value)}, `${value} (${bytes(one.memory_bytes[value])})`)));
    batch.value = String(first.value);
    dataset.value = one.dataset;
    showDataset();
    showMemory();
  };
  const showDataset = () => {
    const one = choices.datasets.find((item) => item.name === dataset.value);
    if (one) [images.value, size.value] = [one.images, one.bytes_per_image];
  };
  models.addEventListener('change', showModel);
  batch.addEventListener('change', showMemory);
  step.addEventListener('input', showMemory);
  dataset.addEventListener('change', showDataset);
  for (const input of [images, size]) input.addEventListener('input', () => (dataset.value = ''));
  showModels();
  choices.listeners.push(showModels);
  const own = ownFiles(choices, 'trace', 'Your own step trace (JSON)', (key) => {
    models.value = key;
    showModel();
  });
  const [target, measuredPart] = [el('div', {class: 'row'}, field('Train for', amount), field('Unit', unit)),
    el('details', {'data-at': '/workload/measured'}, el('summary', {}, 'I measured a step'), el('div', {class: 'inside'},
      el('div', {class: 'row'}, field('It took, or did', step, {at: '/workload/measured/step'}), field('as', stepUnit)),
      el('div', {class: 'row'}, field('Images in it', stepBatch, {at: '/workload/measured/batch'}), field('on one', on, {at: '/workload/measured/gpu'})),
      el('p', {class: 'hint'}, 'It stands in place of the recorded steps, and is carried to other GPUs by the kernels of the model.')))];
  target.dataset.at = '/workload';
  return {
    needs,
    parts: [
      fieldset('Model', el('div', {class: 'row'}, field('Model', models, {at: '/workload/trace'}), field('Batch per GPU', batch, {at: '/workload/batch_per_gpu'})),
        about, measuredPart, own, el('details', {}, el('summary', {}, memory), memoryRows)),
      fieldset('Training',
        el('div', {class: 'row'}, field('Dataset', dataset), field('Images', images, {at: '/workload/dataset/images'}),
          field('Bytes an image', size, {at: '/workload/dataset/bytes_per_image'})), target),
    ],
    build: () => ({
      trace: models.value,
      batch_per_gpu: measured() ? Number(stepBatch.value) : Number(batch.value),
      dataset: {name: dataset.value || 'dataset', images: Number(images.value), bytes_per_image: Number(size.value)},
      [unit.value]: Number(amount.value),
      ...(measured() ? {measured: {[stepUnit.value]: stepUnit.value === 'step' ? step.value.trim() : Number(step.value), batch: Number(stepBatch.value), gpu: on.value}} : {}),
    }),
  };
}
