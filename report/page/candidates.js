// The table of all candidates that the filters leave. The page holds them as data and lists as many as are asked for.

const kListed = 50;
let listed = kListed;
let sorting = null;  // { column, sign }
let marked = -1;     // the candidate that was picked in the chart

const ranged = (low, high) => (low === "" || high === "" || low === high ? "" : `${low} .. ${high}`);
const perMillion = (row) => (priced(row) === null || !(row.images > 0) ? null : (1e6 * priced(row)) / row.images);
const perHour = (row) => (row.hourly === null || !(row.usd[0] > 0) ? null : (row.hourly * priced(row)) / row.usd[0]);
const digits = (value, count = 3) => (value === null ? "" : value < 1000 ? String(Number(value.toPrecision(count))) : value.toFixed(0));
const standing = (row, best) => (row.chosen ? "chosen" : best.has(row) ? "Pareto" : data.kind === "plan" && !meets(row) ? "misses" : "");

// `of` is what a column sorts by, `text` what it shows, `more` what stands below.
const kColumns = [
  { name: "rented", of: (row) => row.rented, more: (row, best) => standing(row, best), always: true },
  { name: "GPUs", of: (row) => row.gpus, text: (row) => `${row.fewest < row.gpus ? `${row.fewest} to ` : ""}${row.gpus} x ${row.gpu}`, numeric: true },
  { name: "where", of: (row) => row.where },
  { name: "scheme", of: (row) => row.scheme },
  { name: "policy", of: (row) => row.policy },
  { name: "runs", of: (row) => row.runs, numeric: true },
  { name: "time", of: (row) => row.time[0], text: (row) => clock(row.time[0]), more: (row) => ranged(clock(row.time[1]), clock(row.time[2])), numeric: true, always: true },
  { name: "USD", of: (row) => priced(row), text: (row) => dollars(priced(row)) + (row.doubtful ? " (?)" : ""),
    more: (row) => (priced(row) === null || row.usd[1] === null ? "" : ranged(dollars(priced(row, 1)), dollars(priced(row, 2)))), numeric: true, always: true },
  { name: "USD a million images", of: perMillion, text: (row) => digits(perMillion(row)), numeric: true, always: true },
  { name: "USD a GPU-hour", of: perHour, text: (row) => digits(perHour(row)), numeric: true, always: true },
  { name: "GPU busy", of: (row) => row.busy, text: (row) => (row.busy === null ? "" : percent(row.busy)), numeric: true },
  { name: "kg CO2e", of: (row) => row.kg, text: (row) => digits(row.kg), numeric: true },
  { name: "interruptions a run", of: (row) => row.losses, text: (row) => digits(row.losses, 2), numeric: true },
  { name: data.outcome, of: (row) => row.met, text: (row) => row.metText + (row.assumed ? " (!)" : ""), numeric: true },
];
// What is the same in all rows stands once, in the caption.
const differs = (column) => rows.some((row) => column.of(row) !== column.of(rows[0]));
const shownColumns = rows.length === 0 ? [] : kColumns.filter((column) => column.always || (rows.length > 1 && differs(column)));
const written = (column, row) => (column.text ? column.text(row) : column.of(row));
const inAll = () => kColumns.filter((column) => !shownColumns.includes(column) && !["", null, "none", "0"].includes(written(column, rows[0])))
  .map((column) => `${column.name} ${written(column, rows[0])}`).join(", ");

// Texts are compared once for each column: thousands of rows have few different ones.
const orders = new Map();
function place(column, row) {
  const value = column.of(row);
  if (column.numeric) return value ?? Infinity;
  if (!orders.has(column)) orders.set(column, new Map([...new Set(rows.map(column.of))].sort(new Intl.Collator(undefined, { numeric: true }).compare).map((text, k) => [text, k])));
  return orders.get(column).get(value);
}

function sorted() {
  if (sorting === null) return visible();
  const { column, sign } = sorting;
  const keyed = visible().map((row) => [place(column, row), row]);
  // What is not known stands last either way.
  return keyed.sort(([a, one], [b, other]) => (a === b ? one.i - other.i : a === Infinity ? 1 : b === Infinity ? -1 : sign * (a - b))).map(([, row]) => row);
}

function line(row, best) {
  const out = make("tr", { className: row.i === marked ? "picked" : row.chosen ? "chosen" : "" }, ...shownColumns.map((column) => {
    const more = column.more ? column.more(row, best) : "";
    return make("td", { className: column.numeric ? "n" : "", textContent: written(column, row) }, ...(more ? [make("small", { textContent: more })] : []));
  }));
  out.dataset.row = row.i;
  return out;
}

function showCandidates() {
  const table = document.getElementById("candidates");
  if (!table) return;
  const best = new Set(pareto());
  const all = sorted(), first = rows[marked];
  const shown = [...(first && visible().includes(first) ? [first] : []), ...all.filter((row) => row !== first).slice(0, listed)];
  table.tBodies[0].replaceChildren(...shown.map((row) => line(row, best)));
  const common = inAll();
  table.caption.textContent = `Candidates: ${shown.length} of ${all.length} are listed${common ? `. All: ${common}` : ""}`;
  document.getElementById("more-candidates").hidden = shown.length >= all.length;
  say();
}

function buildCandidates() {
  const table = document.getElementById("candidates");
  if (!table) return;
  const heading = make("tr");
  for (const column of shownColumns) {
    const cell = make("th", { className: column.numeric ? "n" : "" }, button(column.name, () => {
      sorting = { column, sign: sorting?.column === column && sorting.sign === 1 ? -1 : 1 };
      for (const other of heading.cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", sorting.sign === 1 ? "ascending" : "descending");
      listed = kListed;
      showCandidates();
    }));
    heading.append(cell);
  }
  table.tHead.replaceChildren(heading);
  const more = button("List 400 more", () => { listed += 400; showCandidates(); });
  more.id = "more-candidates";
  table.parentElement.after(more);
}
