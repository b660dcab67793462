// The page's data as rows, what the reader chose, and how numbers are written.

const data = JSON.parse(document.getElementById("data").textContent);
const uses = data.uses || [];

function decode(columns) {
  const word = (name, i) => columns[name].words[columns[name].rows[i]];
  return columns.gpus.map((gpus, i) => ({
    i, gpus, fewest: columns.fewest_gpus[i],
    where: word("where", i), market: word("market", i), rented: word("rented", i), gpu: word("gpu", i),
    scheme: word("scheme", i), policy: word("policy", i),
    time: columns.time[i], usd: columns.usd[i], ranked: columns.ranked_usd[i], doubtful: columns.doubtful[i] === 1, spot: columns.spot_usd[i] || 0, instances: columns.instance_usd[i] || 0,
    rate: columns.images_per_s[i], kg: columns.kg[i], kwh: columns.kwh[i], met: columns.met[i],
    chosen: columns.chosen[i] === 1, scales: columns.scales[i] === 1, ledger: columns.ledger[i],
  }));
}

const rows = data.columns ? decode(data.columns) : [];
const nameOf = (row) => [row.where, row.rented, row.scheme === "none" ? "" : row.scheme, row.policy === "fixed" ? "" : row.policy]
  .filter((part) => part).join(", ");

// The same without what all rows have in common.
const kNameParts = ["where", "rented", "scheme", "policy"];
const varying = kNameParts.filter((part) => rows.some((row) => row[part] !== rows[0][part]));
const labelOf = (row) => (varying.length === 0 ? nameOf(row) : varying.map((part) => row[part]).filter((part) => part).join(", "));

// What the reader chose: values that filters let pass ("" is all), bounds, and factors on prices.
const choice = { where: "", gpu: "", scheme: "", policy: "", market: "", text: "", hours: Infinity, most: Infinity, goals: false, intervals: rows.length <= 40, price: 1, discount: 0 };

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
  seeds.usd.map((usd, k) => (usd === null ? null : billOf(usd, seeds.instances[k] || 0, seeds.spot[k] || 0)));

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
  for (const key of ["where", "gpu", "scheme", "policy", "market"]) if (choice[key] && row[key] !== choice[key]) return false;
  if (row.time[0] / 3600 > choice.hours) return false;
  const usd = priced(row);
  if (choice.most < Infinity && (usd === null || usd > choice.most)) return false;
  if (choice.goals && row.met < 1) return false;
  return !choice.text || nameOf(row).toLowerCase().includes(choice.text) || row.gpu.toLowerCase().includes(choice.text);
}

const visible = () => rows.filter(passes);

// What the Pareto set compares, with the reader's prices: a plan takes doubtful prices at their high ends, and ranks
// (not null) only what meets the goals.
function ranked(row) {
  if (row.ranked === null || priced(row) === null) return null;
  return row.ranked === row.usd[0] ? priced(row) : scaled(row.ranked, row.usd[0], priced(row));
}

// Those that none of `among` beats in both time and cost, the fastest first.
function pareto(among) {
  const sorted = among.filter((row) => ranked(row) !== null && row.time[0] !== null)
    .sort((a, b) => a.time[0] - b.time[0] || ranked(a) - ranked(b) || a.i - b.i);
  let least = Infinity;
  return sorted.filter((row) => ranked(row) < least && ((least = ranked(row)), true));
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
