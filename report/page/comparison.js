// Charts that compare candidates.

const kMostBars = 25;
const cheapest = () => visible().slice().sort((a, b) => (priced(a) ?? Infinity) - (priced(b) ?? Infinity) || a.i - b.i);
const tip = (row) => [nameOf(row), `${row.fewest < row.gpus ? `${row.fewest} to ` : ""}${row.gpus} x ${row.gpu}`,
  `time ${clock(row.time[0])}  [${clock(row.time[1])} .. ${clock(row.time[2])}]`,
  `USD ${dollars(priced(row))}  [${dollars(priced(row, 1))} .. ${dollars(priced(row, 2))}]`,
  row.kg === null ? "" : `${row.kg.toPrecision(3)} kg CO2e`, row.met < 1 ? `${data.outcome}: ${row.metText}${data.kind === "plan" ? "" : " of runs"}` : ""]
  .filter((line) => line).join("\n");

// Horizontal and vertical bars from low to high, drawn under the points.
function whiskers(params, api) {
  const [x, y, xLow, xHigh, yLow, yHigh] = [0, 1, 2, 3, 4, 5].map((i) => api.value(i));
  const [west, east] = [api.coord([xLow, y]), api.coord([xHigh, y])];
  const [south, north] = [api.coord([x, yLow]), api.coord([x, yHigh])];
  const style = { stroke: api.visual("color"), lineWidth: 1, opacity: 0.35 };
  const line = (a, b) => ({ type: "line", shape: { x1: a[0], y1: a[1], x2: b[0], y2: b[1] }, style, silent: true });
  return { type: "group", silent: true, children: [line(west, east), line(south, north)] };
}

// A colour for each provider and a shape for each market of the whole page, whatever the filters leave.
const providers = [...new Set(rows.map((row) => row.provider))].sort();
const markets = [...new Set(rows.map((row) => row.market))].sort();
const kShapes = ["circle", "triangle", "rect", "diamond", "roundRect"];
const colourOf = (row) => palette[providers.indexOf(row.provider) % palette.length];
const shapeOfMarket = (row) => kShapes[markets.indexOf(row.market) % kShapes.length];

const kindOf = (row) => row.kind ??= [row.provider, row.market, shapeOf(row), row.gpus].join();

// A plan tries each instance and count in many regions, with many schemes, batches and checkpoints. One point stands for them: the cheapest that meets the goals.
function drawn(among, best) {
  if (data.kind !== "plan") return among;
  const known = new Map();
  const better = (a, b) => (meets(a) !== meets(b) ? meets(a) : priced(a) < priced(b));
  for (const row of among) {
    const key = kindOf(row);
    if (!known.has(key) || better(row, known.get(key))) known.set(key, row);
  }
  return [...new Set([...known.values(), ...best, ...among.filter((row) => row.chosen)])];
}

// What is beyond a goal is shaded, with the goal's name.
// `at` is a place within both axes: on a logarithmic one, what lies at 0 is left out.
function beyond(colours, name, limit, horizontal, at) {
  const render = (params, api) => {
    const { x, y, width, height } = params.coordSys;
    const edge = api.coord(horizontal ? [limit, at[1]] : [at[0], limit])[horizontal ? 0 : 1];
    const shape = horizontal ? { x: Math.max(x, edge), y, width: x + width - Math.max(x, edge), height } : { x, y, width, height: Math.min(y + height, edge) - y };
    if (!(shape.width > 0 && shape.height > 0)) return null;
    const text = { text: name, fill: colours.dim, fontSize: 11 };
    return { type: "group", silent: true, children: [{ type: "rect", shape, style: { fill: "#d55e00", opacity: 0.12 }, silent: true },
      { type: "text", style: { ...text, x: horizontal ? shape.x + 4 : x + width - 4, y: horizontal ? y + height - 16 : shape.y + 4, textAlign: horizontal ? "left" : "right" }, silent: true }] };
  };
  return { type: "custom", name, renderItem: render, silent: true, clip: true, z: 0, data: [at], encode: { x: 0, y: 1 }, tooltip: { show: false }, itemStyle: { color: "#d55e00" } };
}

const kNameSize = 11;

// Names beside the points of the Pareto set, as many as there is room for, the chosen one's first. One that would hide a
// point or another name is left out, except the chosen one's: tooltips have them all. A thin line leads to a point that
// is not near. `drawnPoints`: hours, dollars and size of each point.
function names(drawnPoints, colours) {
  return (params, api) => {
    const { x: west, y: north, width: across, height: down } = params.coordSys;
    const taken = params.context.taken ??= drawnPoints.map(([hours, usd, size]) => {
      const [x, y] = api.coord([hours, usd]);
      return [x - size / 2, y - size / 2, x + size / 2, y + size / 2];
    });
    const said = params.context.said ??= new Set();
    const row = rows[api.value(2)], [x, y] = api.coord([api.value(0), api.value(1)]);
    const text = shapeOf(row), fontWeight = row.chosen ? "bold" : "normal", width = widthOf(text, kNameSize, fontWeight) + 4, height = kNameSize + 2;
    if (said.has(text)) return null;
    const hidden = ([left, top, right, bottom]) => taken.filter((other) => left < other[2] && other[0] < right && top < other[3] && other[1] < bottom).length;
    const places = [0, 10, 20, 34].flatMap((far) => [[10, -8 - height - far], [10, 8 + far], [-width - 10, -8 - height - far], [-width - 10, 8 + far], [-width / 2, -12 - height - far], [-width / 2, 12 + far]]
      .map(([dx, dy]) => ({ far, box: [x + dx, y + dy, x + dx + width, y + dy + height] })))
      .filter(({ box: [left, top, right, bottom] }) => left >= west && right <= west + across && top >= north && bottom <= north + down);
    const place = places.find(({ box }) => hidden(box) === 0) ?? (row.chosen ? places.sort((a, b) => hidden(a.box) - hidden(b.box))[0] : undefined);
    if (!place) return null;
    const [left, top, right, bottom] = place.box, within = (value, low, high) => Math.min(high, Math.max(low, value));
    taken.push(place.box);
    said.add(text);
    const leader = { type: "line", silent: true, style: { stroke: colours.dim, lineWidth: 0.7 }, shape: { x1: x, y1: y, x2: within(x, left, right), y2: within(y, top, bottom) } };
    return { type: "group", silent: true, children: [...(place.far > 0 ? [leader] : []),
      { type: "text", silent: true, style: { text, x: left, y: top, fill: colours.text, stroke: colours.back, lineWidth: 2.5, fontSize: kNameSize, fontFamily: family, fontWeight } }] };
  };
}

function paretoOption(colours) {
  const priceable = visible().filter((row) => priced(row) !== null && row.time[0] > 0 && priced(row) > 0);
  if (priceable.length === 0) return null;
  const best = pareto(), among = drawn(priceable, best);
  // Intervals of thousands of points are a carpet.
  const whiskered = new Set(!choice.intervals ? [] : among.length <= 100 ? among : best);
  const ends = (of, reached) => [...among.map(of), ...[...whiskered].flatMap(reached)].filter((value) => value > 0);
  const hours = ends((row) => row.time[0] / 3600, (row) => [row.time[1] / 3600, row.time[2] / 3600]);
  const costs = ends((row) => priced(row), (row) => [priced(row, 1), priced(row, 2)]);
  // A goal that is not far from the points is in the picture.
  const series = [];
  for (const [name, limit, values, horizontal] of [["after the deadline", (data.goals?.deadline_s ?? null) / 3600, hours, true], ["above the budget", data.goals?.budget_usd ?? null, costs, false]]) {
    if (!(limit > 0 && limit < 3 * values.reduce((most, value) => Math.max(most, value), 0))) continue;
    values.push(limit * 1.05);
    series.push(beyond(colours, name, limit, horizontal, [hours[0], costs[0]]));
  }
  const size = (row) => (row.chosen ? 17 : best.includes(row) ? 12 : among.length > 500 ? 6 : 8);
  const groups = new Map();
  for (const provider of providers) for (const market of markets) groups.set([provider, market && market !== "on-demand" ? market : ""].filter((part) => part).join(" "), among.filter((row) => row.provider === provider && row.market === market));
  for (const [name, members] of groups) {
    if (members.length === 0) continue;
    const color = colourOf(members[0]), symbol = shapeOfMarket(members[0]);
    // The legend shows the shape of the first series of a name.
    series.push({ type: "scatter", name, symbol, itemStyle: { color }, z: 3,
      data: members.map((row) => ({ value: [row.time[0] / 3600, priced(row)], row: row.i, symbolSize: size(row),
        itemStyle: { opacity: meets(row) || data.kind !== "plan" ? 0.85 : 0.25, ...(row.chosen ? { borderColor: colours.text, borderWidth: 2 } : {}) } })) });
    series.push({ type: "custom", name, renderItem: whiskers, itemStyle: { color }, silent: true, clip: true, z: 1, dimensions: ["hours", "usd", "low", "high", "usd low", "usd high"], encode: { x: 0, y: 1 },
      data: members.filter((row) => whiskered.has(row)).map((row) => [row.time[0], priced(row), row.time[1] || row.time[0], row.time[2] || row.time[0], priced(row, 1) || priced(row), priced(row, 2) || priced(row)]
        .map((value, k) => (k === 0 || k === 2 || k === 3 ? value / 3600 : value))) });
  }
  series.push({ type: "line", name: "beaten by none", step: "end", showSymbol: false, silent: true, lineStyle: { color: colours.text, width: 1.5, type: "dashed" }, itemStyle: { color: colours.text },
    data: best.map((row) => [row.time[0] / 3600, priced(row)]), z: 2 });
  series.push({ type: "custom", name: "names", renderItem: names(among.map((row) => [row.time[0] / 3600, priced(row), size(row)]), colours), silent: true, z: 4, encode: { x: 0, y: 1 }, itemStyle: { color: colours.text },
    data: [...best].sort((a, b) => Number(b.chosen) - Number(a.chosen)).map((row) => [row.time[0] / 3600, priced(row), row.i]) });
  return {
    height: 480,
    legend: legend(colours, { data: [...new Set(series.map(({ name }) => name))].filter((name) => name !== "names") }),
    grid: { left: 70, right: 20, top: 40, bottom: 50 },
    xAxis: fitted(colours, hours, { name: "hours" }),
    yAxis: fitted(colours, costs, { name: "USD", nameGap: 50, nameRotate: 90 }),
    tooltip: { trigger: "item", formatter: (item) => (item.data && item.data.row !== undefined ? tip(rows[item.data.row]) : "") },
    // What is outside is not drawn, but not taken out either: the shades hang on one point.
    dataZoom: [{ type: "inside", xAxisIndex: 0, filterMode: "none" }, { type: "inside", yAxisIndex: 0, filterMode: "none" }],
    series,
  };
}

const kMostScalings = 6;

// For each kind of GPU (or place, or scheme) the highest rate of each count; the ideal is as many times that of the fewest.
// Kinds of the Pareto set come first, then those of the highest rates.
function scalingOption(colours) {
  const kinds = new Map();
  for (const row of visible()) {
    if (row.rate === null || !row.scales) continue;
    const points = kinds.get(row[data.scaling_by]) || kinds.set(row[data.scaling_by], new Map()).get(row[data.scaling_by]);
    if (!(points.get(row.gpus) > row.rate)) points.set(row.gpus, row.rate);
  }
  const out = [], counts = new Set();
  const first = new Set(pareto().map((row) => row[data.scaling_by]));
  const most = (points) => Math.max(...points.values());
  [...kinds].filter(([, points]) => points.size > 1).sort((a, b) => Number(first.has(b[0])) - Number(first.has(a[0])) || most(b[1]) - most(a[1])).slice(0, kMostScalings).forEach(([kind, points], i) => {
    const sorted = [...points].sort((a, b) => a[0] - b[0]), [fewest, base] = sorted[0], last = sorted[sorted.length - 1][0];
    for (const [gpus] of sorted) counts.add(gpus);
    const color = palette[i % palette.length];
    out.push({ type: "line", name: kind, data: sorted, symbol: "circle", symbolSize: 7, itemStyle: { color }, lineStyle: { color } });
    out.push({ type: "line", name: "ideal", silent: true, showSymbol: false, lineStyle: { color, type: "dashed", width: 1, opacity: 0.6 }, itemStyle: { color: colours.dim }, data: [[fewest, base], [last, (base * last) / fewest]] });
  });
  if (out.length === 0) return null;
  const customValues = [...counts].sort((a, b) => a - b);
  return {
    legend: legend(colours),
    grid: { left: 80, right: 20, top: 40, bottom: 50 },
    xAxis: axis(colours, { type: "log", logBase: 2, name: "GPUs", min: customValues[0], max: customValues[customValues.length - 1], axisLabel: { customValues, showMinLabel: true, showMaxLabel: true }, axisTick: { customValues }, splitLine: { show: false } }),
    yAxis: fitted(colours, out.flatMap((line) => line.data.map((point) => point[1])), { name: "images/s", nameGap: 60 }),
    tooltip: { trigger: "item", formatter: (item) => `${item.seriesName}\n${item.value[0]} GPUs: ${Number(item.value[1].toPrecision(5))} images/s` },
    series: out,
  };
}

function barsOption(colours, members, series, unit, written, most) {
  const shown = members.slice(0, kMostBars).reverse();
  return {
    height: 90 + 26 * shown.length,
    legend: series.length > 1 ? legend(colours) : undefined,
    grid: { left: 10, right: 30, top: series.length > 1 ? 36 : 10, bottom: 44, containLabel: true },
    xAxis: axis(colours, { type: "value", name: unit, max: most }),
    yAxis: axis(colours, { type: "category", data: shown.map((row) => row.i), axisLabel: { formatter: (i) => `${rows[i].chosen ? "chosen: " : ""}${data.kind === "plan" ? `${rows[i].gpus} x ${rows[i].gpu}, ${rows[i].where}` : labelOf(rows[i])}`, width: labelRoom(420), overflow: "truncate", fontSize: 11, interval: 0 } }),
    tooltip: { trigger: "item", formatter: (item) => `${nameOf(rows[Number(item.name)])}\n${item.seriesName}: ${written(item.value, rows[Number(item.name)])}` },
    series: series.map(({ name, color, of }) => ({ type: "bar", name, stack: "all", itemStyle: { color }, data: shown.map(of) })),
  };
}

function ledgerOption(colours) {
  const members = cheapest().filter((row) => row.ledger.length > 0);
  if (members.length === 0) return null;
  const total = (row) => row.ledger.reduce((sum, seconds) => sum + seconds, 0) || 1;
  const used = uses.map((name, k) => ({ name: words(name), color: useColours[name], of: (row) => (100 * row.ledger[k]) / total(row), k }))
    .filter(({ k }) => members.some((row) => row.ledger[k] > 0));
  return barsOption(colours, members, used, "% of GPU time", (value, row) => `${value.toFixed(2)} %, ${((value / 100) * total(row) / 3600).toPrecision(4)} GPU-hours`, 100);
}

function energyOption(colours) {
  // A plan shows the least of each provider and kind of GPU, and what it chose: others differ by little from these, in
  // their number, batch or scheme.
  const seen = new Set(), isNew = (key) => !seen.has(key) && seen.add(key);
  const known = visible().filter((row) => row.kg !== null).sort((a, b) => a.kg - b.kg || a.i - b.i);
  const least = data.kind === "plan" ? known.filter((row) => row.chosen || isNew(`${row.provider} ${row.gpu}`)) : known;
  const members = least.slice(0, kMostBars), chosen = least.find((row) => row.chosen);
  if (members.length === 0) return null;
  if (chosen && !members.includes(chosen)) members[members.length - 1] = chosen;
  return barsOption(colours, members, [{ name: "carbon", color: palette[2], of: (row) => row.kg }], "kg CO2e",
    (value, row) => `${value.toPrecision(4)} kg CO2e${row.kwh === null ? "" : `, ${row.kwh.toPrecision(4)} kWh`}`);
}

// A policy's seeds as points, with the bar from the 5th to the 95th percentile.
function policiesOption(colours) {
  const shown = new Set(visible().map((row) => row.i));
  const groups = (data.seeds || []).filter((group) => shown.has(group.row)).slice(0, 40).reverse();
  if (groups.length === 0) return null;
  const bar = (params, api) => {
    const [start, low, middle, high, end] = [1, 2, 3, 4, 5].map((i) => api.coord([api.value(i), api.value(0)]));
    const line = (x1, y1, x2, y2, width) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colours.text, lineWidth: width } });
    return { type: "group", children: [line(start[0], low[1], end[0], low[1], 1), line(low[0], low[1], high[0], high[1], end[0] > high[0] ? 5 : 1.5), line(middle[0], middle[1] - 8, middle[0], middle[1] + 8, 3)] };
  };
  const series = [];
  [["time", 3600, 0], ["usd", 1, 1]].forEach(([what, unit, at]) => {
    const values = groups.map((group) => (group.spread ? [] : what === "usd" ? seedCosts(group) : group.time).filter((value) => value !== null).map((value) => value / unit).sort((a, b) => a - b));
    // From the low end over percentiles to the high end; of seeds that are points, from percentile to percentile.
    const ends = groups.map((group, k) => (group.spread ? group.spread[what].map((value) => value / unit) : [0.05, 0.05, 0.5, 0.95, 0.95].map((share) => quantile(values[k], share))));
    series.push({ type: "scatter", name: at === 0 ? "hours" : "USD", xAxisIndex: at, yAxisIndex: at, symbolSize: 6, itemStyle: { opacity: 0.45, color: palette[at] },
      data: values.flatMap((sorted, k) => sorted.map((value) => [value, k])) });
    series.push({ type: "custom", name: "5th to 95th percentile, median", xAxisIndex: at, yAxisIndex: at, renderItem: bar, silent: true, encode: { x: [1, 2, 3, 4, 5], y: 0 }, itemStyle: { color: colours.text },
      data: ends.map((five, k) => [k, ...five]).filter(([, low]) => low !== null) });
  });
  for (const [at, name, limit] of [[0, "deadline", (data.goals?.deadline_s ?? null) / 3600], [1, "budget", data.goals?.budget_usd ?? null]]) {
    const most = series[2 * at + 1].data.reduce((sofar, five) => Math.max(sofar, five[5]), 0);
    if (!(limit > 0) || limit > 3 * most) continue;
    const upright = ({ coordSys: { y, height } }, api) => ({ type: "line", silent: true, style: { stroke: "#d55e00", lineWidth: 1.5, lineDash: [5, 4] },
      shape: { x1: api.coord([limit, 0])[0], y1: y, x2: api.coord([limit, 0])[0], y2: y + height } });
    series.push({ type: "custom", name, xAxisIndex: at, yAxisIndex: at, renderItem: upright, silent: true, encode: { x: 0, y: 1 }, itemStyle: { color: "#d55e00" }, data: [[limit, 0]] });
  }
  const names = groups.map((group) => labelOf(rows[group.row]));
  const y = (at) => axis(colours, { type: "category", gridIndex: at, data: names, axisLabel: { show: at === 0, width: labelRoom(260), overflow: "truncate", fontSize: 11, interval: 0 } });
  return {
    height: 90 + 30 * groups.length,
    legend: legend(colours),
    grid: [{ left: Math.min(labelRoom(260) + 20, 16 + 6.5 * Math.max(...names.map((name) => name.length))), right: "38%", top: 36, bottom: 46 }, { left: "66%", right: 20, top: 36, bottom: 46 }],
    xAxis: [axis(colours, { type: "value", scale: true, gridIndex: 0, name: "hours" }), axis(colours, { type: "value", scale: true, gridIndex: 1, name: "USD" })],
    yAxis: [y(0), y(1)],
    tooltip: { trigger: "item", formatter: (item) => (item.seriesType === "scatter" ? `${names[item.value[1]]}\n${Number(item.value[0].toPrecision(5))} ${item.seriesName}` : "") },
    series,
  };
}

// How far each prediction is off, with its interval; measured values of all units share one axis, by factors.
function validationOption(colours) {
  const cells = (data.cells || []).filter((cell) => cell[2] > 0 && cell[3] > 0);
  if (cells.length === 0) return null;
  const off = (value, cell) => 100 * (value / cell[2] - 1);
  const studies = new Map();
  for (const cell of cells) studies.set(cell[0], [...(studies.get(cell[0]) || []), cell]);
  const series = [];
  let hue = 0;
  for (const [name, members] of studies) {
    const color = palette[hue++ % palette.length];
    series.push({ type: "custom", name, renderItem: whiskers, itemStyle: { color }, silent: true, clip: true, z: 1, encode: { x: 0, y: 1 },
      data: members.map((cell) => [cell[2], off(cell[3], cell), cell[2], cell[2], off(cell[4] || cell[3], cell), off(cell[5] || cell[3], cell)]) });
    series.push({ type: "scatter", name, symbolSize: 8, itemStyle: { color }, z: 3, data: members.map((cell) => ({ value: [cell[2], off(cell[3], cell)], cell })) });
  }
  const measured = cells.map((cell) => cell[2]);
  series.push({ type: "line", name: "equal", data: [[Math.min(...measured) / 1.3, 0], [Math.max(...measured) * 1.3, 0]], showSymbol: false, silent: true, lineStyle: { color: colours.dim, type: "dashed" }, itemStyle: { color: colours.dim } });
  return {
    height: 520,
    legend: legend(colours),
    grid: { left: 70, right: 20, top: 44, bottom: 50 },
    xAxis: fitted(colours, measured, { name: "measured (each in its own unit)" }),
    yAxis: axis(colours, { type: "value", name: "predicted against measured, %", nameGap: 46 }),
    tooltip: { trigger: "item", formatter: (item) => (item.data && item.data.cell
      ? `${item.seriesName}\n${item.data.cell[1]}\nmeasured ${item.data.cell[2]} ${item.data.cell[6]}\npredicted ${item.data.cell[3]} (${item.value[1] > 0 ? "+" : ""}${item.value[1].toFixed(1)} %)` : "") },
    dataZoom: [{ type: "inside", xAxisIndex: 0 }, { type: "inside", yAxisIndex: 0 }],
    series,
  };
}
