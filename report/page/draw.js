// Charts: colours of the theme, one place that makes and resizes them.

// Okabe and Ito's colours, which the colour-blind tell apart, and some between.
const palette = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c8c3c", "#7a6fbe", "#b58863", "#5f9ea0"];
const useColours = { compute: "#009e73", "exposed_communication": "#d55e00", straggler: "#cc79a7", input_stall: "#e69f00",
  checkpoint: "#56b4e9", evaluation: "#8c8c3c", provisioning: "#7a6fbe", lost: "#b02418", idle: "#9aa7b5" };

// On paper: dark on white, and no wider than a page, before the style of print is in force.
let printing = false;
const kPaper = { text: "#000000", dim: "#333333", line: "#bbbbbb", back: "#ffffff", panel: "#ffffff" };
const kPaperWidth = 680, kPaperHeight = 300;
const kHeight = 420;  // of a chart that states none, as page.css has it
// What labels beside bars may take: at most a third of a narrow window, so that there is room for the bars.
const labelRoom = (most) => Math.round(Math.min(most, (printing ? kPaperWidth : document.documentElement.clientWidth) / 3));

const theme = () => {
  if (printing) return kPaper;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return { text: colour("--text"), dim: colour("--dim"), line: colour("--line"), back: colour("--back"), panel: colour("--panel") };
};

// A canvas does not inherit: it ignores a font whose family is "inherit", and draws and measures in one of its own.
const family = getComputedStyle(document.body).fontFamily;
const pen = document.createElement("canvas").getContext("2d");
// Pixels that a text takes.
function widthOf(text, size, weight = "normal") {
  pen.font = `${weight} ${size}px ${family}`;
  return pen.measureText(text).width;
}

const charts = new Map();

// Makes room for a legend that takes several lines in a window of that width.
function fitLegend(option, width) {
  if (!option.legend) return;
  const names = option.legend.data ?? [...new Set(option.series.map(({ name }) => name))];
  let lines = 1, used = 0;
  for (const name of names) {
    const wide = 40 + widthOf(name, 12);  // with its symbol and the gaps
    if (used > 0 && used + wide > width - 20) { lines += 1; used = 0; }
    used += wide;
  }
  if (lines > kLegendLines) option.legend.type = "scroll";
  else if (lines > 1) {
    const more = kLegendLine * (lines - 1);
    option.grid = [option.grid].flat().map((grid) => ({ ...grid, top: grid.top + more }));
    option.height = (option.height || kHeight) + more;
  }
}

// `make(theme)` returns what ECharts draws, or null where nothing is left to draw.
function chart(name, make, prepare) {
  const place = document.getElementById(`chart-${name}`);
  if (place) charts.set(name, { place, make, prepare, instance: null });
}

function draw(name, resized = false) {
  const entry = charts.get(name);
  if (!entry) return;
  const colours = theme();
  const option = entry.make(colours);
  entry.place.classList.toggle("empty", option === null);
  if (option === null) {
    entry.hidden = true;
    return;
  }
  fitLegend(option, printing ? kPaperWidth : entry.place.clientWidth);
  entry.place.style.width = printing ? `${kPaperWidth}px` : "";
  const height = printing ? Math.min(option.height || kPaperHeight, kPaperHeight) : option.height || 0;
  if (height !== (entry.height || 0)) {
    entry.place.style.height = height > 0 ? `${height}px` : "";
    resized = true;
  }
  entry.height = height;
  delete option.height;
  if (!entry.instance) {
    entry.instance = echarts.init(entry.place, null, { renderer: "canvas" });
    if (entry.prepare) entry.prepare(entry.instance);
  } else if (resized || entry.hidden) {
    entry.instance.resize();
  }
  entry.hidden = false;
  entry.instance.setOption({
    animation: false,
    textStyle: { color: colours.text, fontFamily: family },
    color: palette,
    // Drawn on the canvas: what the data says can be no markup.
    tooltip: { renderMode: "richText", confine: true, backgroundColor: colours.panel, borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12 }, ...option.tooltip },
    ...Object.fromEntries(Object.entries(option).filter(([key]) => key !== "tooltip")),
  }, { notMerge: true });
}

const drawAll = () => {
  waiting = [];
  document.documentElement.classList.remove("drawing");
  charts.forEach((_, name) => draw(name, true));
};

// Draws one chart after the other, once the table and the sentence are on the screen: a reader who chooses on is not kept waiting.
let waiting = [], timer = 0;
function drawSoon(names) {
  waiting = names.filter((name) => charts.has(name));
  const next = () => {
    if (waiting.length > 0) draw(waiting.shift());
    document.documentElement.classList.toggle("drawing", waiting.length > 0);
    if (waiting.length > 0) timer = setTimeout(next, 30);
  };
  clearTimeout(timer);
  document.documentElement.classList.add("drawing");
  timer = setTimeout(next, 0);
}

const axis = (colours, more) => ({
  nameLocation: "middle", nameGap: 30, nameTextStyle: { color: colours.dim },
  axisLine: { lineStyle: { color: colours.line } }, axisTick: { lineStyle: { color: colours.line } },
  axisLabel: { color: colours.dim, hideOverlap: true, ...(more.axisLabel || {}) },
  splitLine: { lineStyle: { color: colours.line, opacity: 0.6 } },
  ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== "axisLabel")),
});

// Marks of an axis from `least` to `most`: 1, 2 and 5 times powers of ten, evenly or by factors, as many as there is room for.
function marks(least, most, byFactors) {
  if (!byFactors) {
    const raw = (most - least) / 8, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((k) => k * power >= raw) * power;
    return Array.from({ length: Math.floor(most / step + 1e-9) - Math.ceil(least / step - 1e-9) + 1 }, (_, k) => Number(((Math.ceil(least / step - 1e-9) + k) * step).toPrecision(12)));
  }
  const steps = Math.log10(most / least) <= 4.5 ? [1, 2, 5] : [1];
  const out = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); ++power) out.push(...steps.map((k) => Number((k * 10 ** power).toPrecision(12))));
  return out.filter((value) => value >= least && value <= most);
}

// From the least to the most of `values`, which are above zero: by factors where they span many, else evenly.
function fitted(colours, values, more) {
  const [least, most] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  const byFactors = most / least > 12, pad = (most - least) * 0.05 || most * 0.05;
  const [min, max] = byFactors ? [least / 1.3, most * 1.3] : [Math.max(0, least - pad), most + pad];
  const customValues = marks(min, max, byFactors);
  const out = axis(colours, { type: byFactors ? "log" : "value", min, max, ...more,
    axisLabel: { customValues, formatter: (value) => String(Number(value.toPrecision(4))), ...(more.axisLabel || {}) } });
  return { ...out, axisTick: { ...out.axisTick, customValues }, splitLine: { ...out.splitLine, customValues } };
}

// Legends of more lines than these have pages.
const kLegendLines = 4, kLegendLine = 22;
const legend = (colours, more = {}) => ({ type: "plain", top: 0, textStyle: { color: colours.text, fontSize: 12 },
  pageTextStyle: { color: colours.dim }, pageIconColor: colours.text, pageIconInactiveColor: colours.line, ...more });

// Buttons that zoom and move a chart's time axis, for keyboards.
function zoomButtons(name, label) {
  const entry = charts.get(name);
  if (!entry) return;
  const bar = make("div", { className: "zoom" });
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", `Zoom of ${label}`);
  const act = (change) => () => {
    const { start, end } = entry.instance.getOption().dataZoom[0];
    let [from, to] = change(start, end);
    const width = Math.min(100, Math.max(0.01, to - from));
    from = Math.min(100 - width, Math.max(0, from));
    entry.instance.dispatchAction({ type: "dataZoom", start: from, end: from + width });
  };
  const actions = [
    ["Zoom in", (a, b) => [a + (b - a) / 4, b - (b - a) / 4]],
    ["Zoom out", (a, b) => [a - (b - a) / 2, b + (b - a) / 2]],
    ["Earlier", (a, b) => [a - (b - a) / 2, b - (b - a) / 2]],
    ["Later", (a, b) => [a + (b - a) / 2, b + (b - a) / 2]],
    ["All", () => [0, 100]],
  ];
  bar.append(...actions.map(([text, change]) => button(text, act(change))));
  entry.place.after(bar);
}
