// Puts the page together.

// A table sorts by the column whose heading is pressed; numbers by what they start with, times by their seconds.
const valueOf = (text) => {
  const parts = text.split(" ")[0].split(":").map(Number);
  return parts.some(Number.isNaN) ? NaN : parts.reduce((sum, part) => 60 * sum + part, 0);
};

function sortable(table) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (!heading.textContent) return;
    heading.replaceChildren(button(heading.textContent, () => {
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
    }));
  });
}

function changed() {
  passing = unbeaten = null;
  listed = kListed;
  showCandidates();
  drawSoon(["pareto", "scaling", "ledger", "policies", "energy"]);
}

document.documentElement.classList.add("js");
buildFilters();
buildCandidates();
pickers();
for (const table of document.querySelectorAll("#ledger-table")) sortable(table);
chart("pareto", paretoOption, (instance) => instance.on("click", ({ data: point }) => {
  if (!point || point.row === undefined) return;
  marked = point.row;
  showCandidates();
  document.querySelector("#candidates tr.picked")?.scrollIntoView({ block: "nearest" });
  const k = details.findIndex((detail) => detail.row === point.row);
  if (k >= 0) pick(k);
}));
chart("scaling", scalingOption);
chart("ledger", ledgerOption);
chart("timeline", timelineOption);
chart("steps", stepsOption);
chart("policies", policiesOption);
chart("energy", energyOption);
chart("validation", validationOption);
showCandidates();
drawSoon([...charts.keys()]);
zoomButtons("timeline", "the timeline");
zoomButtons("steps", "the steps");
let wait = 0;
addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(drawAll, 100); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("beforeprint", () => { printing = true; drawAll(); });
addEventListener("afterprint", () => { printing = false; drawAll(); });
