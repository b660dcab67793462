// The page's data as rows, what the reader chose, and how numbers are written.

// An element with these properties and children.
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}
const button = (textContent, act) => {
  const element = make("button", { type: "button", textContent });
  element.addEventListener("click", act);
  return element;
};

const data = JSON.parse(document.getElementById("data").textContent);
const uses = data.uses || [];

// A column holds one value for all rows, indices of words, or a value for each row.
const columns = Object.entries(data.columns ?? {}).map(([name, stored]) =>
  [name, "all" in stored ? () => stored.all : stored.words ? (i) => stored.words[stored.rows[i]] : (i) => stored.values[i]]);
const rows = Array.from({ length: columns.length > 0 ? data.count : 0 }, (_, i) => {
  const row = { i };
  for (const [name, at] of columns) row[name] = at(i);
  return Object.assign(row, { fewest: row.fewest_gpus ?? row.gpus, time: [row.time, row.time_low, row.time_high], usd: [row.usd, row.usd_low, row.usd_high],
    ranked: row.ranked_usd, spot: row.spot_usd, instances: row.instance_usd, metText: row.met_text });
});
const nameOf = (row) => row.name ??= [row.where, row.rented, row.scheme === "none" ? "" : row.scheme, row.policy === "fixed" ? "" : row.policy]
  .filter((part) => part).join(", ");
// Without its batch size and its parts: "2 x p3.2xlarge".
const shapeOf = (row) => row.rented.split(",")[0];
// A plan ranks what meets its goals; runs have met theirs with every seed.
const meets = (row) => (data.kind === "plan" ? row.ranked !== null : row.met === 1);

// The same without what all rows have in common.
const kNameParts = ["where", "rented", "scheme", "policy"];
const varying = kNameParts.filter((part) => rows.some((row) => row[part] !== rows[0][part]));
const labelOf = (row) => (varying.length === 0 ? nameOf(row) : varying.map((part) => row[part]).filter((part) => part).join(", "));

// What the reader chose: values that filters let pass ("" is all), bounds, and factors on prices.
const kFilters = { provider: "Provider", region: "Region", market: "Market", gpu: "GPU", scheme: "Scheme", policy: "Policy" };
const nothingChosen = () => ({ ...Object.fromEntries(Object.keys(kFilters).map((key) => [key, ""])), text: "", hours: Infinity, most: Infinity, goals: false, price: 1, discount: 0 });
const choice = { ...nothingChosen(), intervals: rows.length <= 40 };

// A bill of which instances are these parts, with the reader's prices.
const billOf = (usd, instances, spot) =>
  Math.max(0, usd + instances * (choice.price - 1) + spot * (choice.price * (1 - choice.discount) - 1));

// As calibration/statistics.cpp has it; what is not known does not count.
function quantile(values, share) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const place = share * (sorted.length - 1), low = Math.floor(place), high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

// The ends of a bill hold the same shares of instances: more or less time of the same machines.
const scaled = (end, usd, now) => (end === null ? now : end * (usd > 0 ? now / usd : 1));

// Returns the bill of each seed of a candidate, or null for a seed without a price.
const seedCosts = (seeds) =>
  seeds.usd.map((usd, k) => (usd === null ? null : billOf(usd, seeds.instances?.[k] || 0, seeds.spot?.[k] || 0)));

const seedsOf = new Map((data.seeds || []).map((group) => [group.row, group]));
function repriced(row) {
  const seeds = seedsOf.get(row.i);
  if (!seeds) {
    const now = billOf(row.usd[0], row.instances, row.spot);
    return [now, scaled(row.usd[1], row.usd[0], now), scaled(row.usd[2], row.usd[0], now)];
  }
  const now = seedCosts(seeds);
  const ends = (list) => list.map((end, k) => (now[k] === null ? null : scaled(end, seeds.usd[k], now[k])));
  return [quantile(now, 0.5), quantile(ends(seeds.low), 0.05), quantile(ends(seeds.high), 0.95)];
}

// Charts ask for each price many times over.
const pricesKnown = new Map();
let pricesAt = "";

// The middle, low or high end in dollars with the reader's prices, or null without a price.
function priced(row, end = 0) {
  if (row.usd[0] === null || (choice.price === 1 && choice.discount === 0)) return row.usd[end] ?? row.usd[0];
  const at = `${choice.price} ${choice.discount}`;
  if (at !== pricesAt) { pricesKnown.clear(); pricesAt = at; }
  if (!pricesKnown.has(row.i)) pricesKnown.set(row.i, repriced(row));
  return pricesKnown.get(row.i)[end];
}

function passes(row) {
  if (row.time[0] / 3600 > choice.hours) return false;
  if (choice.most < Infinity && !(priced(row) !== null && priced(row) <= choice.most)) return false;
  if (choice.goals && !meets(row)) return false;
  return !choice.text || (row.searched ??= `${nameOf(row)} ${row.gpu}`.toLowerCase()).includes(choice.text);
}

// What passes, and those of them that none beats: known until the reader chooses anew.
let passing = null, unbeaten = null;
const inView = new Uint8Array(rows.length);
function visible() {
  if (passing !== null) return passing;
  const chosen = Object.keys(kFilters).filter((key) => choice[key]);
  passing = rows.filter((row) => chosen.every((key) => row[key] === choice[key]) && passes(row));
  inView.fill(0);
  for (const row of passing) inView[row.i] = 1;
  return passing;
}

// What the Pareto set compares, with the reader's prices: a plan takes doubtful prices at their high ends, and ranks
// (not null) only what meets the goals.
function ranked(row) {
  if (row.ranked === null || priced(row) === null) return null;
  return row.ranked === row.usd[0] ? priced(row) : scaled(row.ranked, row.usd[0], priced(row));
}

const byTime = rows.filter((row) => row.time[0] !== null).sort((a, b) => a.time[0] - b.time[0] || a.i - b.i);

// Returns the visible rows that no visible row beats in both time and cost, the fastest first.
function pareto() {
  if (unbeaten !== null) return unbeaten;
  visible();
  const out = [];
  let least = Infinity;
  for (const row of byTime) {
    const cost = inView[row.i] ? ranked(row) : null;
    if (cost === null || cost >= least) continue;
    if (out.length > 0 && out[out.length - 1].time[0] === row.time[0]) out.pop();
    out.push(row);
    least = cost;
  }
  return unbeaten = out;
}

function clock(seconds) {
  if (seconds === null) return "";
  if (seconds < 600) return `${seconds >= 0.1 ? seconds.toFixed(1) : seconds.toPrecision(2)} s`;
  const whole = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}
function short(seconds) {
  if (seconds === 0) return "0";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60], ["s", 1], ["ms", 1e-3], ["us", 1e-6]])
    if (Math.abs(seconds) >= size || unit === "us") return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  return "";
}
const dollars = (usd) => (usd === null ? "no price" : usd < 1 ? usd.toFixed(4) : usd.toFixed(2));
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const words = (name) => name.replaceAll("_", " ");
