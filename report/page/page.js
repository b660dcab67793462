// Puts the page together: filters and what-ifs, tables that sort, charts.

function control(label, element) {
  const wrap = document.createElement("label");
  wrap.textContent = label;
  wrap.append(element);
  return wrap;
}

function select(key, values) {
  const element = document.createElement("select");
  element.id = `filter-${key}`;
  for (const [value, text] of [["", "all"], ...values.map((value) => [value, value])]) {
    const option = document.createElement("option");
    option.value = value;
    option.textContent = text;
    element.append(option);
  }
  element.addEventListener("change", () => { choice[key] = element.value; changed(); });
  return element;
}

function input(id, attributes, act) {
  const element = document.createElement("input");
  element.id = `filter-${id}`;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.addEventListener("input", () => { act(element); changed(); });
  return element;
}

const numberOf = (element, otherwise) => (element.value.trim() === "" || !(Number(element.value) >= 0) ? otherwise : Number(element.value));

function buildFilters() {
  const place = document.getElementById("filters");
  if (!place || rows.length < 2) return;
  place.className = "controls";
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", "Filters and what-ifs");
  const names = { where: "Where", gpu: "GPU", market: "Market", scheme: "Scheme", policy: "Policy" };
  for (const [key, label] of Object.entries(names)) {
    const values = [...new Set(rows.map((row) => row[key]))].filter((value) => value).sort();
    if (values.length > 1) place.append(control(label, select(key, values)));
  }
  place.append(control("Contains", input("text", { type: "search", size: "12" }, (element) => { choice.text = element.value.toLowerCase(); })));
  place.append(control("At most hours", input("hours", { type: "number", min: "0", step: "any" }, (element) => { choice.hours = numberOf(element, Infinity); })));
  place.append(control("At most USD", input("usd", { type: "number", min: "0", step: "any" }, (element) => { choice.most = numberOf(element, Infinity); })));
  if (rows.some((row) => row.met < 1))
    place.append(control("Goals always met", input("goals", { type: "checkbox" }, (element) => { choice.goals = element.checked; })));
  const intervals = input("intervals", { type: "checkbox" }, (element) => { choice.intervals = element.checked; });
  intervals.checked = choice.intervals;
  place.append(control("Intervals drawn", intervals));
  place.append(control("What if instances cost x", input("price", { type: "number", min: "0", step: "0.05", value: "1" }, (element) => { choice.price = numberOf(element, 1); })));
  if (rows.some((row) => row.spot > 0 || seedsOf.get(row.i)?.spot.some((usd) => usd > 0)))
    place.append(control("and spot were cheaper by %", input("discount", { type: "number", min: "0", max: "100", step: "5", value: "0" }, (element) => { choice.discount = Math.min(1, numberOf(element, 0) / 100); })));
  const reset = document.createElement("button");
  reset.type = "button";
  reset.id = "filter-reset";
  reset.textContent = "Reset";
  reset.addEventListener("click", () => {
    Object.assign(choice, { where: "", gpu: "", scheme: "", policy: "", market: "", text: "", hours: Infinity, most: Infinity, goals: false, price: 1, discount: 0 });
    for (const element of place.querySelectorAll("select, input"))
      if (element === intervals) continue;
      else if (element.type === "checkbox") element.checked = false; else element.value = element.getAttribute("value") || "";
    changed();
  });
  const said = document.createElement("output");
  said.id = "filter-said";
  said.setAttribute("aria-live", "polite");
  place.append(reset, said);
}

// Table rows of candidates, by their number in the data.
const lines = () => [...document.querySelectorAll("#candidates tbody tr")];

function showCandidates() {
  const best = new Set(pareto(visible()).map((row) => row.i));
  for (const line of lines()) {
    const row = rows[Number(line.dataset.row)];
    line.hidden = !passes(row);
    line.cells[8].textContent = dollars(priced(row)) + (row.doubtful ? " (?)" : "");
    line.cells[9].textContent = row.usd[1] === null || priced(row) === null ? "" : `${dollars(priced(row, 1))} .. ${dollars(priced(row, 2))}`;
    line.cells[13].textContent = row.chosen ? "chosen" : best.has(row.i) ? "Pareto" : "";
  }
  const said = document.getElementById("filter-said");
  if (!said) return;
  const left = visible();
  const first = cheapest()[0];
  const changes = choice.price !== 1 || choice.discount > 0 ? " at these prices" : "";
  said.textContent = left.length === 0 ? "Nothing is left." : `${left.length} of ${rows.length}; cheapest${changes}: ${nameOf(first)}, ${dollars(priced(first))}${priced(first) === null ? "" : " USD"}, ${clock(first.time[0])}`;
}

// A table sorts by the column whose heading is pressed; numbers by what they start with, times by their seconds.
const valueOf = (text) => {
  const parts = text.split(" ")[0].split(":").map(Number);
  return parts.some(Number.isNaN) ? NaN : parts.reduce((sum, part) => 60 * sum + part, 0);
};

function sortable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (!heading.textContent) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = heading.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const body = table.tBodies[0];
      const numeric = heading.classList.contains("n");
      const keyed = [...body.rows].map((line) => [line.cells[column].textContent, line]);
      keyed.sort(([a], [b]) => {
        const [x, y] = [valueOf(a), valueOf(b)];
        if (numeric && (Number.isNaN(x) || Number.isNaN(y))) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
        return (numeric ? x - y : a.localeCompare(b)) * (descending ? -1 : 1);
      });
      body.append(...keyed.map(([, line]) => line));
    });
  });
}

function changed() {
  showCandidates();
  for (const name of ["pareto", "scaling", "ledger", "policies", "energy"]) draw(name);
}

document.documentElement.classList.add("js");
buildFilters();
pickers();
for (const table of document.querySelectorAll("#candidates, #ledger-table")) sortable(table);
chart("pareto", paretoOption, (instance) => instance.on("click", ({ data: point }) => {
  if (!point || point.row === undefined) return;
  for (const line of lines()) line.classList.toggle("picked", Number(line.dataset.row) === point.row);
  const line = lines().find((one) => Number(one.dataset.row) === point.row);
  if (line) line.scrollIntoView({ block: "nearest" });
  const k = details.findIndex((detail) => detail.row === point.row);
  if (k >= 0) pick(k);
}));
chart("scaling", scalingOption);
chart("ledger", ledgerOption);
chart("bill", billOption);
chart("timeline", timelineOption);
chart("steps", stepsOption);
chart("policies", policiesOption);
chart("energy", energyOption);
chart("validation", validationOption);
drawAll();
zoomButtons("timeline", "the timeline");
zoomButtons("steps", "the steps");
if (rows.length > 1) showCandidates();
let wait = 0;
addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(drawAll, 100); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("beforeprint", () => { printing = true; drawAll(); });
addEventListener("afterprint", () => { printing = false; drawAll(); });
