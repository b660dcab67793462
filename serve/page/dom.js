// Small pieces of the page. Text from outside reaches the document as text only.

let ids = 0;

/** An element: properties by name, "class" and aria-/data- attributes too; children are elements or text. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== 'string') element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A control below its label. */
export function field(label, control, hint) {
  control.id = control.id || `f${++ids}`;
  const parts = [el('label', {for: control.id}, label), control];
  if (hint) {
    hint.id = hint.id || `f${++ids}`;
    control.setAttribute('aria-describedby', hint.id);
    parts.push(hint);
  }
  return el('div', {class: 'field'}, ...parts);
}

export function select(options, chosen) {
  const control = el('select');
  for (const option of options) {
    const [value, text] = Array.isArray(option) ? option : [option, option];
    control.append(el('option', {value, selected: value === chosen}, text));
  }
  return control;
}

export const number = (value, min, max, step = 1) =>
  el('input', {type: 'number', value: String(value), min: String(min), max: String(max), step: String(step), required: true});

export const text = (value, placeholder = '') =>
  el('input', {type: 'text', value, placeholder, autocomplete: 'off', spellcheck: false});

/** A checkbox with its label; `box` is the input. */
export function check(label, {checked = false, title, price} = {}) {
  const box = el('input', {type: 'checkbox', checked});
  const whole = el('label', {class: 'check', title}, box, el('span', {}, label), price ? el('span', {class: 'price'}, price) : null);
  return {whole, box};
}

/** Checkboxes for names; chosen() lists the checked ones that are not switched off. */
export function checks(items, chosenFirst, className = '') {
  const all = items.map((item) => {
    const {name, title, price} = typeof item === 'string' ? {name: item} : item;
    return {name, ...check(name, {checked: chosenFirst.includes(name), title, price})};
  });
  return {
    whole: el('div', {class: `checks ${className}`}, ...all.map((one) => one.whole)),
    all,
    chosen: () => all.filter((one) => one.box.checked && !one.box.disabled).map((one) => one.name),
  };
}

export const fieldset = (legend, ...children) => el('fieldset', {}, el('legend', {}, legend), ...children);

export function duration(seconds) {
  if (seconds < 1) return `${(1000 * seconds).toPrecision(3)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.floor(seconds);
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60, rest = whole % 60;
  const two = (value) => String(value).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)} h` : `${minutes}:${two(rest)} min`;
}

export function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  for (; count >= 1024 && at < units.length - 1; ++at) count /= 1024;
  return `${count >= 100 || at === 0 ? count.toFixed(0) : count.toPrecision(3)} ${units[at]}`;
}
