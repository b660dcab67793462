// The forms. Each has build(): what is posted. The server checks it while it is filled in, and says what is wrong at the
// field; what only the program can find out is shown below.

import * as api from './api.js';
import {check, checks, clearProblems, el, field, fieldset, number, select, showProblem, text} from './dom.js';
import {platforms} from './platforms.js';
import {ownFiles} from './uploads.js';
import {workload} from './workload.js';

const titled = (list) => list.map((one) => ({name: one.name, title: one.summary}));
const named = (list, flag) => list.filter((one) => one[flag]).map((one) => one.name);

/** What a plan tries where no policy is chosen: "fixed, and spot-first on spot". */
function withoutChoice(policies) {
  const tried = policies.filter((one) => one.plan_default);
  const always = named(tried.map((one) => ({...one, everywhere: !one.spot_only})), 'everywhere').join(', ');
  const spot = named(tried, 'spot_only').join(', ');
  return spot === '' ? always : `${always}, and ${spot} on spot`;
}

const counts = (value) => value.split(/[\s,;]+/).filter((word) => word !== '').map(Number);
const stated = (pairs) => Object.fromEntries(Object.entries(pairs).filter(([, value]) => value !== '' && value?.length !== 0));

function compareForm(choices) {
  let where;
  const size = el('span', {class: 'size', role: 'status'});
  const training = workload(choices, ['epochs', 'images', 'steps'], () => where?.refresh());
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
  where = platforms(choices, {aws: {region: 'us-east-1', gpu: 'V100'}, gcp: {region: 'us-central1', gpu: 'V100'}}, {changed: () => where && refresh(), needs: training.needs});
  refresh();
  return {
    size, refresh,
    parts: [
      ...training.parts,
      fieldset('Platforms', el('div', {'data-at': '/platforms'}, where.whole),
        ownFiles(choices, 'platform', 'Your own platform file (JSON)', where.open)),
      fieldset('GPUs and schemes', el('div', {class: 'row'}, field('GPU counts', gpus, {at: '/gpus'})),
        el('p', {class: 'group'}, 'All-reduce schemes'), el('div', {'data-at': '/schemes'}, schemes.whole)),
      fieldset('Policies', el('div', {'data-at': '/policies'}, policies.whole),
        el('p', {class: 'hint'}, `These need a file of yours and run from the command line only: ${choices.command_line_policies.join(', ')}.`)),
      fieldset('Goals and faults',
        el('div', {class: 'row'}, field('Deadline', deadline, {at: '/deadline'}), field('Budget', budget, {at: '/budget'}), field('Checkpoints', checkpoint, {at: '/checkpoint'})),
        el('div', {class: 'row'}, field('First seed', seed, {at: '/seeds/first'}), field('Seeds', seeds, {at: '/seeds/count'}))),
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
  const called = (one) => ({name: one.name, label: one.label});
  const providers = checks(choices.providers.map(called), choices.providers.filter((one) => !one.owned).map((one) => one.name), 'narrow');
  choices.listeners.push(() => providers.replace(choices.providers.map(called)));
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
      fieldset('Goals', el('div', {class: 'row'}, field('Objective', objective), field('Deadline', deadline, {at: '/deadline'}), field('Budget', budget, {at: '/budget'}))),
      fieldset('Where to look',
        el('div', {class: 'row'}, field('At least GPUs', least, {at: '/min_gpus'}), field('At most GPUs', most, {at: '/max_gpus'})),
        el('p', {class: 'group'}, 'Providers'), el('div', {'data-at': '/catalogs'}, providers.whole),
        ownFiles(choices, 'platform', 'Your own platform file (JSON)', (key) => providers.all.find((one) => one.name === key)?.box.click()), el('p', {class: 'group'}, 'Markets'), markets.whole,
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
  const checkpoint = el('select', {required: true});
  const none = el('p', {class: 'hint'}, 'There is no checkpoint yet. Train a model on the page, or start the server with a directory of ganymede train --checkpoint.');
  const show = () => {
    const before = checkpoint.value;
    checkpoint.replaceChildren(...choices.checkpoints.map((name) => el('option', {value: name}, name)));
    if (choices.checkpoints.includes(before)) checkpoint.value = before;
    none.hidden = choices.checkpoints.length > 0;
  };
  show();
  choices.listeners.push(show);
  const count = number(64, 1, 10000), seed = number(1, 0, Number.MAX_SAFE_INTEGER);
  return {
    parts: [fieldset('Images', el('div', {class: 'row'}, field('Checkpoint', checkpoint, {at: '/checkpoint'})), none,
      el('div', {class: 'row'}, field('Images', count, {at: '/count'}), field('Seed', seed, {at: '/seed'})),
      el('p', {class: 'hint'}, 'The same seed gives the same images.'))],
    build: () => ({kind: 'generate', checkpoint: checkpoint.value, count: Number(count.value), seed: Number(seed.value)}),
    choose: (name) => (checkpoint.value = name),
  };
}

function trainForm(choices) {
  const model = select(choices.models.map((one) => one.name), 'mlp-gan');
  const about = el('p', {class: 'hint'});
  const show = () => (about.textContent = choices.models.find((one) => one.name === model.value).summary);
  model.addEventListener('change', show);
  show();
  const batch = number(64, 1, 4096), steps = number(1000, 1, 1e7), seed = number(1, 0, Number.MAX_SAFE_INTEGER);
  const images = el('input', {type: 'number', min: '1', max: '1000000000000', placeholder: 'as many as here'}), gpus = number(1, 1, 16);
  return {
    parts: [
      fieldset('Train here', el('div', {class: 'row'}, field('Model', model, {at: '/model'}), field('Batch', batch, {at: '/batch'})), about,
        el('div', {class: 'row'}, field('Steps', steps, {at: '/steps'}), field('Seed', seed, {at: '/seed'})),
        el('p', {class: 'hint'}, 'On images that the program draws itself: glyphs, so that nothing must be downloaded.')),
      fieldset('Beside it, on each cloud', el('div', {class: 'row'}, field('Predict for images', images, {at: '/images'}), field('At most GPUs', gpus, {at: '/max_gpus'})),
        el('p', {class: 'hint'}, 'A few steps are recorded first and carried to the GPUs of each cloud.')),
    ],
    build: () => ({kind: 'train', model: model.value, batch: Number(batch.value), steps: Number(steps.value), seed: Number(seed.value),
                   max_gpus: Number(gpus.value), ...(images.value === '' ? {} : {images: Number(images.value)})}),
  };
}

const kCheckAfter = 400;  // ms without a change

/** `submit(form)` returns when the job is queued, or throws. showError(message) is for what turns out later. */
export function forms(choices, submit) {
  const made = {};
  for (const [kind, make, action] of [['compare', compareForm, 'Compare'], ['plan', planForm, 'Plan'], ['train', trainForm, 'Train'], ['generate', generateForm, 'Generate']]) {
    const one = make(choices);
    const error = el('p', {class: 'error', role: 'alert', hidden: true});
    let whole, timer, asked = 0;
    const showError = (message) => {
      error.textContent = message;
      error.hidden = message === '';
    };
    /** At the field if the error is of one, else below the form. */
    const show = (refused) => {
      if (!refused.at || !showProblem(whole, refused.at, refused.problem)) showError(refused.message);
    };
    const clear = () => {
      clearTimeout(timer);
      asked += 1;
      clearProblems(whole);
      showError('');
    };
    const button = el('button', {class: 'primary', type: 'submit'}, action);
    const send = async (event) => {
      event.preventDefault();
      clear();
      button.disabled = true;
      try {
        await submit(one.build());
      } catch (refused) {
        show(refused);
      }
      button.disabled = false;
    };
    const checkSoon = (event) => {
      one.refresh?.();
      if (event.target.type === 'file') return;
      clear();
      timer = setTimeout(async () => {
        const mine = asked;
        await api.check(one.build()).catch((refused) => mine === asked && refused.at && show(refused));
      }, kCheckAfter);
    };
    whole = el('form', {autocomplete: 'off', onsubmit: send, onchange: checkSoon, oninput: checkSoon}, ...one.parts,
      el('div', {class: 'submit'}, error, button, one.size));
    made[kind] = {whole, showError, choose: one.choose};
  }
  return made;
}
