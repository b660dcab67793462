// A training on this machine: its losses and pictures, and beside it what it would take on each cloud.

import * as api from './api.js';
import {bytes, duration, el} from './dom.js';

const svg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
};

const kWide = 560, kHigh = 220, kLeft = 44, kBottom = 24;

/** `losses`: [step, discriminator, generator] in ascending steps. */
export function lossChart(losses) {
  const last = losses.at(-1);
  const words = last ? `Losses after ${last[0]} steps: discriminator ${last[1].toFixed(3)}, generator ${last[2].toFixed(3)}` : 'No losses yet';
  const chart = svg('svg', {viewBox: `0 0 ${kWide} ${kHigh}`, role: 'img', 'aria-label': words, class: 'chart'});
  if (!last) return el('figure', {class: 'losses'}, chart, el('figcaption', {}, words));
  const values = losses.flatMap((point) => [point[1], point[2]]);
  const low = Math.min(0, ...values), high = Math.max(low + 1e-9, ...values), end = Math.max(1, last[0]);
  const x = (step) => kLeft + ((kWide - kLeft - 4) * step) / end;
  const y = (value) => kHigh - kBottom - ((kHigh - kBottom - 8) * (value - low)) / (high - low);
  for (const part of [0, 0.5, 1]) {
    const value = low + part * (high - low);
    chart.append(svg('line', {x1: kLeft, x2: kWide - 4, y1: y(value), y2: y(value), class: 'grid'}),
      svg('text', {x: kLeft - 6, y: y(value) + 4, 'text-anchor': 'end'}, value.toPrecision(3)));
  }
  chart.append(svg('text', {x: kLeft, y: kHigh - 6}, '0'), svg('text', {x: kWide - 4, y: kHigh - 6, 'text-anchor': 'end'}, `${last[0]} steps`));
  for (const [index, name] of [[1, 'discriminator'], [2, 'generator']])
    chart.append(svg('polyline', {points: losses.map((point) => `${x(point[0]).toFixed(1)},${y(point[index]).toFixed(1)}`).join(' '), class: name}));
  return el('figure', {class: 'losses'}, chart,
    el('figcaption', {}, ...[['discriminator', last[1]], ['generator', last[2]]].map(([name, value]) =>
      el('span', {class: `key ${name}`}, `${name} ${value.toFixed(3)}`))));
}

const file = (step) => `samples-${String(step).padStart(6, '0')}.png`;

/** The newest picture, or the one that is chosen with the slider. `chosen`: undefined for the newest. */
function pictures(job, chosen, choose) {
  const steps = job.pictures ?? [];
  const final = job.files.includes('samples.png') && job.state === 'done';
  const all = [...steps.map((step) => [`after ${step} steps`, file(step)]), ...(final ? [['at the end', 'samples.png']] : [])];
  if (all.length === 0) return el('p', {class: 'hint'}, 'The first pictures come after a tenth of the steps.');
  const index = Math.min(chosen ?? all.length - 1, all.length - 1);
  const [when, name] = all[index];
  const slider = el('input', {type: 'range', min: '0', max: String(all.length - 1), value: String(index), 'aria-label': 'Pictures, from the first to the last'});
  slider.addEventListener('input', () => choose(Number(slider.value) === all.length - 1 ? undefined : Number(slider.value)));
  return el('figure', {class: 'pictures'}, el('img', {src: api.fileOf(job, name), alt: `Generated images ${when}`}),
    all.length > 1 ? slider : null, el('figcaption', {}, `Generated ${when}`));
}

/** JSON has no infinity: null. */
const usd = (value) => (!Number.isFinite(value) ? 'no price' : `${value >= 1 ? value.toFixed(2) : value.toPrecision(2)} USD`);

/** What clouds.json says: one row for the best of each provider and market. */
function cloudTable(found) {
  const row = (one) => {
    const share = found.memory_bytes / one.gpu_memory_bytes;
    /** Nothing where both ends read alike. */
    const range = (measure, shown) => {
      const [low, high] = measure.interval.map(shown);
      return low === high ? null : el('small', {}, `${low} to`, el('br'), high);
    };
    return el('tr', {}, el('th', {scope: 'row'}, `${one.provider} ${one.market}`, el('small', {}, `${one.nodes} x ${one.instance}, ${one.region}; price ${one.prices_as_of}${one.risk === 'assumed' ? '; interruptions assumed' : ''}`)),
      el('td', {class: 'number'}, usd(one.usd.median), range(one.usd, usd)),
      el('td', {class: 'number'}, duration(one.time_s.median), range(one.time_s, duration)),
      el('td', {}, one.gpus > 1 ? `${one.gpus} x ${one.gpu}` : one.gpu, el('small', {}, `${share < 0.01 ? '< 1' : Math.round(100 * share)} % of ${bytes(one.gpu_memory_bytes)}`)));
  };
  return el('div', {class: 'scroll'}, el('table', {class: 'clouds'},
    el('caption', {}, `${found.images.toLocaleString('en')} images on each cloud; ${bytes(found.memory_bytes)} of memory on a GPU; time includes booting`),
    el('thead', {}, el('tr', {}, ...['rented', 'cost', 'time', 'GPU memory'].map((name) => el('th', {scope: 'col'}, name)))),
    el('tbody', {}, ...found.clouds.map(row))));
}

/** Returns update(job), which gives the element of a training; it is called at each poll while the training runs. */
export function trainingView(generate) {
  let id = 0, clouds, asked = false, chosen;
  const losses = el('div'), shown = el('div'), beside = el('div', {class: 'beside'}), more = el('p'), facts = el('dl', {class: 'big'});
  const whole = el('div', {class: 'training'}, el('div', {}, losses, shown, facts, more), beside);
  const showPictures = (job) => {
    const next = pictures(job, chosen, (value) => {
      chosen = value;
      showPictures(job);
    });
    // A picture that is shown already stays, and so does a slider that is being moved.
    if (shown.firstChild?.outerHTML !== next.outerHTML) {
      const focused = shown.contains(document.activeElement);
      shown.replaceChildren(next);
      if (focused) shown.querySelector('input')?.focus();
    }
  };
  return async (job) => {
    if (job.id !== id) [id, clouds, asked, chosen] = [job.id, undefined, false, undefined];
    losses.replaceChildren(lossChart(job.losses));
    showPictures(job);
    more.replaceChildren(...(job.checkpoint ? [el('button', {type: 'button', onclick: () => generate(job.checkpoint)}, 'Generate from it')] : []));
    const result = job.result;
    facts.replaceChildren(...(result ? [['Time here', duration(result.total_s)], ['A step', duration(result.step_mean_s)],
      ['Images a second', Math.round(result.images_per_s).toLocaleString('en')], ['Memory of the training', bytes(result.allocated_peak_bytes)],
      ['Device', result.device]].flatMap(([term, value]) => [el('dt', {}, term), el('dd', {}, value)]) : []));
    if (!asked && job.files.includes('clouds.json')) {
      asked = true;
      clouds = JSON.parse(await api.textOf(job, 'clouds.json'));
      if (job.id === id) beside.replaceChildren(cloudTable(clouds));
    } else if (!clouds) {
      const waits = job.state === 'queued' || job.state === 'running';
      beside.replaceChildren(el('p', {class: 'hint'}, waits ? 'A few steps are recorded and carried to the clouds.' : job.note || 'There is no prediction.'));
    }
    return whole;
  };
}
