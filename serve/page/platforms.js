// The platforms of a comparison: of each provider some regions, markets, and GPUs or instances, as far as they are priced.

import {bytes, checks, el} from './dom.js';

const short = (usd) => `${Number(usd).toFixed(2)} USD/h`;

/** Cheapest price an hour of one of its GPUs in these regions and markets (indices); undefined: not to be had. */
function cheapest(instances, regions, markets, byGpu) {
  let best;
  for (const instance of instances)
    for (const [region, market, usd] of instance.offers)
      if (regions.includes(region) && markets.includes(market)) {
        const price = Number(usd) / (byGpu ? instance.gpus : 1);
        if (best === undefined || price < best) best = price;
      }
  return best;
}

function providerPart(provider, markets, chosen, {changed, needs}) {
  const families = [...new Set(provider.instances.filter((one) => one.kind === 'gpu').map((one) => one.family))].sort();
  const priced = (items, byGpu) => items.map(([name, instances]) => ({name, instances, byGpu, price: ' '}));
  const kinds = priced(families.map((family) => [family, provider.instances.filter((one) => one.family === family)]), true);
  const types = priced(provider.instances.map((one) => [one.name, [one]]), false);
  for (const [i, type] of types.entries()) type.title = `${provider.instances[i].gpus} x ${provider.instances[i].gpu}`;
  const region = checks(provider.regions, chosen ? [chosen.region] : [provider.regions[0]], 'narrow');
  const market = checks(markets, ['on-demand'], 'narrow');
  const gpu = checks(kinds, chosen ? [chosen.gpu] : [], 'wide');
  const instance = checks(types, [], 'wide');
  const summary = el('span', {class: 'chosen'});

  const places = () => [region.chosen().map((name) => provider.regions.indexOf(name)),
                        market.chosen().map((name) => markets.indexOf(name))];
  /** Prices, and what cannot be had where is chosen. */
  const refresh = () => {
    const [regions, sold] = places();
    for (const [list, source] of [[gpu, kinds], [instance, types]])
      for (const [i, one] of list.all.entries()) {
        const memory = Math.max(...source[i].instances.map((item) => item.memory_bytes));
        const small = needs() > memory;  // false if it is not known what is needed
        const price = cheapest(source[i].instances, regions, sold, source[i].byGpu);
        one.box.disabled = price === undefined || small;
        one.whole.classList.toggle('off', one.box.disabled);
        one.whole.querySelector('.price').textContent = `${bytes(memory)}, ${small ? 'too small' : price === undefined ? 'no price' : `from ${short(price)}`}`;
      }
    const count = entries().length;
    summary.textContent = count === 0 ? '' : [...gpu.chosen(), ...instance.chosen()].join(', ');
    changed();
  };
  const entries = () => {
    const all = [];
    for (const [list, source, key] of [[gpu, kinds, 'gpu'], [instance, types, 'instance']])
      for (const one of list.all.filter((item) => item.box.checked && !item.box.disabled)) {
        const found = source.find((item) => item.name === one.name);
        for (const r of region.chosen())
          for (const m of market.chosen())
            if (cheapest(found.instances, [provider.regions.indexOf(r)], [markets.indexOf(m)], false) !== undefined)
              all.push({catalog: provider.name, region: r, market: m, [key]: one.name});
      }
    return all;
  };
  const group = (label, part) => el('div', {role: 'group', 'aria-label': `${provider.name}: ${label}`}, el('p', {class: 'group'}, label), part.whole);
  const whole = el('details', {open: false},
    el('summary', {}, el('span', {}, provider.label ?? provider.name), summary),
    el('div', {class: 'inside', onchange: refresh},
      group('Regions', region), group('Markets', market),
      families.length > 0 ? group('GPUs, on the cheapest instances that hold them (USD per GPU)', gpu) : null,
      el('details', {}, el('summary', {}, 'Instances'), el('div', {class: 'inside'}, instance.whole))));
  refresh();
  return {name: provider.name, whole, entries, refresh};
}

/** `first`: by provider the region and GPU that are chosen to begin with. `needs()`: bytes that a GPU must hold. */
export function platforms(choices, first, {changed, needs}) {
  let ready = false, parts = [];
  const whole = el('div');
  /** Keeps the parts of the providers that are still there, and what is chosen in them. */
  const show = () => {
    const make = (provider) => providerPart(provider, choices.markets, first[provider.name], {changed: () => ready && changed(), needs});
    parts = choices.providers.map((provider) => parts.find((part) => part.name === provider.name) ?? make(provider));
    whole.replaceChildren(...parts.map((part) => part.whole));
  };
  show();
  choices.listeners.push(() => {
    show();
    changed();
  });
  ready = true;
  return {
    whole,
    entries: () => parts.flatMap((part) => part.entries()),
    refresh: () => parts.forEach((part) => part.refresh()),
    /** Unfolds a provider, to choose from it. */
    open: (name) => (parts.find((part) => part.name === name).whole.open = true),
  };
}
