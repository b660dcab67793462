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

/** A control below its label. `at`: what the control fills in of the form, as a JSON pointer; errors appear there. */
export function field(label, control, {hint, at} = {}) {
  control.id = control.id || `f${++ids}`;
  const parts = [el('label', {for: control.id}, label), control];
  if (hint) {
    hint.id = hint.id || `f${++ids}`;
    control.setAttribute('aria-describedby', hint.id);
    parts.push(hint);
  }
  return el('div', {class: 'field', 'data-at': at}, ...parts);
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

/** Checkboxes for names; chosen() lists the checked ones that are not switched off. replace() keeps what is checked. */
export function checks(items, chosenFirst, className = '') {
  const make = (item, checked) => {
    const {name, label, title, price} = typeof item === 'string' ? {name: item} : item;
    return {name, ...check(label ?? name, {checked, title, price})};
  };
  const whole = el('div', {class: `checks ${className}`});
  const list = {
    whole,
    all: [],
    chosen: () => list.all.filter((one) => one.box.checked && !one.box.disabled).map((one) => one.name),
    replace: (now, checked = list.all.filter((one) => one.box.checked).map((one) => one.name)) => {
      list.all = now.map((item) => make(item, checked.includes(item.name ?? item)));
      whole.replaceChildren(...list.all.map((one) => one.whole));
    },
  };
  list.replace(items, chosenFirst);
  return list;
}

/** Says below the control that fills in `at` what is wrong with it. False if the form has no such control. */
export function showProblem(form, at, problem) {
  const places = [...form.querySelectorAll('[data-at]')].filter((one) => at === one.dataset.at || at.startsWith(`${one.dataset.at}/`));
  const place = places.sort((a, b) => b.dataset.at.length - a.dataset.at.length)[0];
  if (!place) return false;
  for (let around = place.closest('details'); around; around = around.parentElement.closest('details')) around.open = true;
  const text = el('p', {class: 'problem at-field', role: 'alert', id: `f${++ids}`}, problem);
  place.append(text);
  const control = place.querySelector('input, select');
  control?.setAttribute('aria-invalid', 'true');
  control?.setAttribute('aria-errormessage', text.id);
  return true;
}

export function clearProblems(form) {
  for (const text of form.querySelectorAll('.at-field')) text.remove();
  for (const control of form.querySelectorAll('[aria-invalid]')) {
    control.removeAttribute('aria-invalid');
    control.removeAttribute('aria-errormessage');
  }
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
