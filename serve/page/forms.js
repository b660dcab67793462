// The three forms. Each has build(): what is posted. The server and the program check it; their message is shown below.

import {check, checks, el, field, fieldset, number, select, text} from './dom.js';
import {platforms} from './platforms.js';

const titled = (list) => list.map((one) => ({name: one.name, title: one.summary}));
const named = (list, flag) => list.filter((one) => one[flag]).map((one) => one.name);

/** What a plan tries where no policy is chosen: "fixed, and spot-first on spot". */
function withoutChoice(policies) {
  const tried = policies.filter((one) => one.plan_default);
  const always = named(tried.map((one) => ({...one, everywhere: !one.spot_only})), 'everywhere').join(', ');
  const spot = named(tried, 'spot_only').join(', ');
  return spot === '' ? always : `${always}, and ${spot} on spot`;
}

/** Model, batch, dataset and how long. */
function workload(choices, units) {
  const models = el('select');
  for (const [label, prefix] of [['Recorded step by step', 'recorded:'], ['Counted from layers', 'layers:']]) {
    const group = el('optgroup', {label});
    for (const one of choices.workloads.filter((item) => item.trace.startsWith(prefix)))
      group.append(el('option', {value: one.trace}, one.trace.slice(prefix.length)));
    models.append(group);
  }
  const about = el('p', {class: 'hint'});
  const batch = el('select');
  const dataset = select([...choices.datasets.map((one) => one.name), ['', 'other']], choices.datasets[0].name);
  const images = number(0, 1, 1e12);
  const size = number(0, 1, 1e12, 'any');
  const amount = number(20, 1, 1e12);
  const unit = select(units);
  unit.setAttribute('aria-label', 'Unit of the target');
  const showModel = () => {
    const one = choices.workloads.find((item) => item.trace === models.value);
    about.textContent = one.about;
    batch.replaceChildren(...one.batches.map((value) => el('option', {value: String(value)}, String(value))));
    batch.value = String(one.batches.includes(64) ? 64 : one.batches.at(-1));
    dataset.value = one.dataset;
    showDataset();
  };
  const showDataset = () => {
    const one = choices.datasets.find((item) => item.name === dataset.value);
    if (one) [images.value, size.value] = [one.images, one.bytes_per_image];
  };
  models.addEventListener('change', showModel);
  dataset.addEventListener('change', showDataset);
  for (const input of [images, size]) input.addEventListener('input', () => (dataset.value = ''));
  models.value = (choices.workloads.find((one) => one.dataset === 'cifar-10') ?? choices.workloads[0]).trace;
  showModel();
  return {
    parts: [
      fieldset('Model', el('div', {class: 'row'}, field('Model', models), field('Batch per GPU', batch)), about),
      fieldset('Training',
        el('div', {class: 'row'}, field('Dataset', dataset), field('Images', images), field('Bytes an image', size)),
        el('div', {class: 'row'}, field('Train for', amount), field('Unit', unit))),
    ],
    build: () => ({
      trace: models.value,
      batch_per_gpu: Number(batch.value),
      dataset: {name: dataset.value || 'dataset', images: Number(images.value), bytes_per_image: Number(size.value)},
      [unit.value]: Number(amount.value),
    }),
  };
}

const counts = (value) => value.split(/[\s,;]+/).filter((word) => word !== '').map(Number);
const stated = (pairs) => Object.fromEntries(Object.entries(pairs).filter(([, value]) => value !== '' && value?.length !== 0));

function compareForm(choices) {
  const size = el('span', {class: 'size', role: 'status'});
  const training = workload(choices, ['epochs', 'images', 'steps']);
  const gpus = el('input', {type: 'text', value: '1, 2, 4', required: true, pattern: '\\s*[0-9]+([\\s,;]+[0-9]+)*[\\s,;]*',
                            inputmode: 'numeric', autocomplete: 'off', title: 'counts such as 1, 2, 4'});
  const schemes = checks(titled(choices.schemes), ['ring']);
  const policies = checks(titled(choices.policies), named(choices.policies, 'default'));
  const deadline = text('', 'e.g. 12h'), budget = text('', 'e.g. 100USD');
  const checkpoint = select([['', 'none'], ['10min', 'every 10 min'], ['1h', 'every hour'], ['daly', 'by Young and Daly']], '');
  const seed = number(1, 0, Number.MAX_SAFE_INTEGER), seeds = number(1, 1, 10000);
  const refresh = () => {
    const several = counts(gpus.value);
    const perPlatform = several.reduce((sum, count) => sum + (count === 1 ? 1 : schemes.chosen().length), 0);
    const runs = where.entries().length * perPlatform * policies.chosen().length * Number(seeds.value);
    size.textContent = `${runs} run${runs === 1 ? '' : 's'}`;
  };
  const where = platforms(choices, {aws: {region: 'us-east-1', gpu: 'V100'}, gcp: {region: 'us-central1', gpu: 'V100'}}, () => refresh());
  refresh();
  return {
    size, refresh,
    parts: [
      ...training.parts,
      fieldset('Platforms', where.whole),
      fieldset('GPUs and schemes', el('div', {class: 'row'}, field('GPU counts', gpus)),
        el('p', {class: 'group'}, 'All-reduce schemes'), schemes.whole),
      fieldset('Policies', policies.whole,
        el('p', {class: 'hint'}, `These need a file of yours and run from the command line only: ${choices.command_line_policies.join(', ')}.`)),
      fieldset('Goals and faults',
        el('div', {class: 'row'}, field('Deadline', deadline), field('Budget', budget), field('Checkpoints', checkpoint)),
        el('div', {class: 'row'}, field('First seed', seed), field('Seeds', seeds))),
    ],
    build: () => ({
      kind: 'compare', workload: training.build(), platforms: where.entries(), gpus: counts(gpus.value),
      schemes: schemes.chosen(), policies: policies.chosen(), seeds: {first: Number(seed.value), count: Number(seeds.value)},
      ...stated({deadline: deadline.value.trim(), budget: budget.value.trim(), checkpoint: checkpoint.value}),
    }),
  };
}

function planForm(choices) {
  const training = workload(choices, ['epochs', 'images']);
  const objective = select([['cost', 'lowest cost'], ['time', 'shortest time'], ['carbon', 'least carbon'], ['risk-neutral', 'lowest expected cost'], ['risk-averse', 'lowest cost in the worst tenth']], 'cost');
  const deadline = text('24h', 'e.g. 60h'), budget = text('100USD', 'e.g. 500USD');
  const most = number(4, 1, 65536), least = number(1, 1, 65536);
  const providers = checks(choices.providers.map((one) => one.name), choices.providers.filter((one) => !one.owned).map((one) => one.name), 'narrow');
  const markets = checks(choices.markets, ['on-demand', 'spot'], 'narrow');
  const family = (one) => one.instances.filter((item) => item.kind === 'gpu').map((item) => item.family);
  const gpus = checks([...new Set(choices.providers.flatMap(family))].sort(), [], 'narrow');
  const schemes = checks(titled(choices.schemes), ['ring', 'nccl']);
  const policies = checks(titled(choices.policies), []);
  const certainty = number(0.9, 0.01, 1, 0.01), seed = number(1, 0, Number.MAX_SAFE_INTEGER), seeds = number(5, 1, 1000);
  const sure = check('Meet the goals with the upper ends of intervals');
  return {
    parts: [
      ...training.parts,
      fieldset('Goals', el('div', {class: 'row'}, field('Objective', objective), field('Deadline', deadline), field('Budget', budget))),
      fieldset('Where to look',
        el('div', {class: 'row'}, field('At least GPUs', least), field('At most GPUs', most)),
        el('p', {class: 'group'}, 'Providers'), providers.whole, el('p', {class: 'group'}, 'Markets'), markets.whole,
        el('details', {}, el('summary', {}, 'GPUs, schemes, policies'), el('div', {class: 'inside'},
          el('p', {class: 'group'}, 'GPUs (none: all that hold the model)'), gpus.whole,
          el('p', {class: 'group'}, 'All-reduce schemes'), schemes.whole,
          el('p', {class: 'group'}, `Policies (none: ${withoutChoice(choices.policies)})`), policies.whole)),
        el('details', {}, el('summary', {}, 'Certainty'), el('div', {class: 'inside'},
          el('div', {class: 'row'}, field('Runs of each candidate', seeds), field('Least probability to meet the goals', certainty), field('Seed', seed)),
          sure.whole))),
    ],
    build: () => ({
      kind: 'plan', workload: training.build(), objective: objective.value, min_gpus: Number(least.value), max_gpus: Number(most.value),
      seeds: Number(seeds.value), certainty: Number(certainty.value), sure: sure.box.checked, seed: Number(seed.value),
      ...stated({deadline: deadline.value.trim(), budget: budget.value.trim(), catalogs: providers.chosen(), markets: markets.chosen(),
                 gpus: gpus.chosen(), schemes: schemes.chosen(), policies: policies.chosen()}),
    }),
  };
}

function generateForm(choices) {
  if (choices.checkpoints.length === 0) {
    return {
      parts: [fieldset('Checkpoint', el('p', {}, 'There is no checkpoint yet. Train one, then start the server with its directory:'),
        el('pre', {}, 'ganymede train --model dcgan-32 \\\n  --steps 2000 --checkpoint run\nganymede serve --checkpoint run'))],
      build: null,
    };
  }
  const checkpoint = select(choices.checkpoints, choices.checkpoints[0]);
  const count = number(64, 1, 10000), seed = number(1, 0, Number.MAX_SAFE_INTEGER);
  return {
    parts: [fieldset('Images', el('div', {class: 'row'}, field('Checkpoint', checkpoint)),
      el('div', {class: 'row'}, field('Images', count), field('Seed', seed)),
      el('p', {class: 'hint'}, 'The same seed gives the same images.'))],
    build: () => ({kind: 'generate', checkpoint: checkpoint.value, count: Number(count.value), seed: Number(seed.value)}),
  };
}

/** `submit(form)` returns when the job is queued, or throws. showError(message) is for what turns out later. */
export function forms(choices, submit) {
  const made = {};
  for (const [kind, make, action] of [['compare', compareForm, 'Compare'], ['plan', planForm, 'Plan'], ['generate', generateForm, 'Generate']]) {
    const one = make(choices);
    const error = el('p', {class: 'error', role: 'alert', hidden: true});
    const showError = (message) => {
      error.textContent = message;
      error.hidden = message === '';
    };
    const button = el('button', {class: 'primary', type: 'submit'}, action);
    const send = async (event) => {
      event.preventDefault();
      showError('');
      button.disabled = true;
      try {
        await submit(one.build());
      } catch (refused) {
        showError(refused.message);
      }
      button.disabled = false;
    };
    const whole = el('form', {autocomplete: 'off', onsubmit: send, onchange: one.refresh, oninput: one.refresh}, ...one.parts,
      one.build ? el('div', {class: 'submit'}, error, button, one.size) : null);
    made[kind] = {whole, showError};
  }
  return made;
}
