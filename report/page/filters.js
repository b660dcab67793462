// Filters and what-ifs, and what is left of the candidates.

const control = (label, element) => make("label", {}, label, element);

function select(key, values) {
  const element = make("select", { id: `filter-${key}` }, ...["", ...values].map((value) => make("option", { value, textContent: value || "all" })));
  element.addEventListener("change", () => { choice[key] = element.value; changed(); });
  return element;
}

function input(id, attributes, act) {
  const element = make("input", { id: `filter-${id}` });
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
  for (const [key, label] of Object.entries(kFilters)) {
    const values = [...new Set(rows.map((row) => row[key]))].filter((value) => value).sort();
    if (values.length > 1) place.append(control(label, select(key, values)));
  }
  place.append(control("Contains", input("text", { type: "search", size: "12" }, (element) => { choice.text = element.value.toLowerCase(); })));
  place.append(control("At most hours", input("hours", { type: "number", min: "0", step: "any" }, (element) => { choice.hours = numberOf(element, Infinity); })));
  place.append(control("At most USD", input("usd", { type: "number", min: "0", step: "any" }, (element) => { choice.most = numberOf(element, Infinity); })));
  if (!rows.every(meets))
    place.append(control(data.kind === "plan" ? "Meets the goals" : "Goals always met", input("goals", { type: "checkbox" }, (element) => { choice.goals = element.checked; })));
  const intervals = input("intervals", { type: "checkbox" }, (element) => { choice.intervals = element.checked; });
  intervals.checked = choice.intervals;
  place.append(control("Intervals drawn", intervals));
  place.append(control("What if instances cost x", input("price", { type: "number", min: "0", step: "0.05", value: "1" }, (element) => { choice.price = numberOf(element, 1); })));
  if (rows.some((row) => row.spot > 0 || seedsOf.get(row.i)?.spot?.some((usd) => usd > 0)))
    place.append(control("and spot were cheaper by %", input("discount", { type: "number", min: "0", max: "100", step: "5", value: "0" }, (element) => { choice.discount = Math.min(1, numberOf(element, 0) / 100); })));
  const reset = button("Reset", () => {
    Object.assign(choice, nothingChosen());
    for (const element of place.querySelectorAll("select, input"))
      if (element === intervals) continue;
      else if (element.type === "checkbox") element.checked = false; else element.value = element.getAttribute("value") || "";
    changed();
  });
  reset.id = "filter-reset";
  const said = make("output", { id: "filter-said" });
  said.setAttribute("aria-live", "polite");
  place.append(reset, said);
}

// Says what is left and its cheapest. In a plan that meets the goals, and doubtful prices are at their high ends.
function say() {
  const said = document.getElementById("filter-said");
  if (!said) return;
  const left = visible(), [among, cost] = data.kind === "plan" ? [left.filter(meets), ranked] : [left, priced];
  const first = among.reduce((best, row) => (best === null || (cost(row) ?? Infinity) < (cost(best) ?? Infinity) ? row : best), null);
  const what = `cheapest${data.kind === "plan" ? " that meets the goals" : ""}${choice.price !== 1 || choice.discount > 0 ? " at these prices" : ""}`;
  said.textContent = left.length === 0 ? "Nothing is left."
    : `${left.length} of ${rows.length}; ${first === null ? "none meets the goals" : `${what}: ${nameOf(first)}, ${dollars(priced(first))}${priced(first) === null ? "" : " USD"}, ${clock(first.time[0])}`}`;
}
