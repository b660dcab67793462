// Charts that compare candidates.

const kMostBars = 25;
const cheapest = () => visible().slice().sort((a, b) => (priced(a) ?? Infinity) - (priced(b) ?? Infinity) || a.i - b.i);
const tip = (row) => [nameOf(row), `${row.fewest < row.gpus ? `${row.fewest} to ` : ""}${row.gpus} x ${row.gpu}`,
  `time ${clock(row.time[0])}  [${clock(row.time[1])} .. ${clock(row.time[2])}]`,
  `USD ${dollars(priced(row))}  [${dollars(priced(row, 1))} .. ${dollars(priced(row, 2))}]`,
  row.kg === null ? "" : `${row.kg.toPrecision(3)} kg CO2e`, row.met < 1 ? `meets the goals in ${percent(row.met)} of runs` : ""]
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

function paretoOption(colours) {
  const among = visible().filter((row) => priced(row) !== null && row.time[0] > 0 && priced(row) > 0);
  if (among.length === 0) return null;
  const groups = new Map();
  for (const row of among) {
    const key = row.where.split(" ")[0] + (row.market && row.market !== "on-demand" ? ` ${row.market}` : "");
    groups.set(key, [...(groups.get(key) || []), row]);
  }
  const best = pareto(among);
  // Intervals of thousands of points are a carpet.
  const whiskered = new Set(!choice.intervals ? [] : among.length <= 300 ? among : best);
  const ends = (of, reached) => [...among.map(of), ...[...whiskered].flatMap(reached)].filter((value) => value > 0);
  const series = [];
  let hue = 0;
  for (const [name, members] of groups) {
    const color = palette[hue++ % palette.length];
    series.push({ type: "custom", name, renderItem: whiskers, itemStyle: { color }, silent: true, clip: true, z: 1, dimensions: ["hours", "usd", "low", "high", "usd low", "usd high"], encode: { x: 0, y: 1 },
      data: members.filter((row) => whiskered.has(row)).map((row) => [row.time[0], priced(row), row.time[1] || row.time[0], row.time[2] || row.time[0], priced(row, 1) || priced(row), priced(row, 2) || priced(row)]
        .map((value, k) => (k === 0 || k === 2 || k === 3 ? value / 3600 : value))) });
    series.push({ type: "scatter", name, itemStyle: { color }, symbolSize: members.length > 500 ? 5 : 9, z: 3,
      data: members.map((row) => ({ value: [row.time[0] / 3600, priced(row)], row: row.i, symbol: row.chosen ? "diamond" : "circle", symbolSize: row.chosen ? 16 : undefined })) });
  }
  series.push({ type: "line", name: "beaten by none", step: "end", showSymbol: false, silent: true, lineStyle: { color: colours.text, width: 1.5, type: "dashed" }, itemStyle: { color: colours.text },
    data: best.map((row) => [row.time[0] / 3600, priced(row)]), z: 2 });
  return {
    height: 480,
    legend: legend(colours),
    grid: { left: 70, right: 20, top: 40, bottom: 50 },
    xAxis: fitted(colours, ends((row) => row.time[0] / 3600, (row) => [row.time[1] / 3600, row.time[2] / 3600]), { name: "hours" }),
    yAxis: fitted(colours, ends((row) => priced(row), (row) => [priced(row, 1), priced(row, 2)]), { name: "USD", nameGap: 50, nameRotate: 90 }),
    tooltip: { trigger: "item", formatter: (item) => (item.data && item.data.row !== undefined ? tip(rows[item.data.row]) : "") },
    dataZoom: [{ type: "inside", xAxisIndex: 0 }, { type: "inside", yAxisIndex: 0 }],
    series,
  };
}

// The ideal of all schemes of a GPU in a place is as many times its smallest number of GPUs.
function scalingOption(colours) {
  const kinds = new Map();
  for (const row of visible()) {
    if (row.rate === null || !row.scales) continue;
    const kind = `${row.where}, ${row.gpu}`;
    const series = kinds.get(kind) || kinds.set(kind, new Map()).get(kind);
    const points = series.get(row.scheme) || series.set(row.scheme, new Map()).get(row.scheme);
    if (!(points.get(row.gpus) > row.rate)) points.set(row.gpus, row.rate);
  }
  const out = [];
  const kMostKinds = 8;
  [...kinds].map(([kind, series]) => [kind, series, [...series.values()].flatMap((points) => [...points])])
    .filter(([, , all]) => new Set(all.map(([gpus]) => gpus)).size > 1).sort((a, b) => b[2].length - a[2].length).slice(0, kMostKinds)
    .forEach(([kind, series, all], i) => {
      const fewest = Math.min(...all.map(([gpus]) => gpus)), most = Math.max(...all.map(([gpus]) => gpus));
      const base = Math.max(...all.filter(([gpus]) => gpus === fewest).map(([, rate]) => rate));
      const color = palette[i % palette.length];
      let style = 0;
      for (const [scheme, points] of series) {
        const sorted = [...points].sort((a, b) => a[0] - b[0]);
        if (sorted[0][0] > fewest) sorted.unshift([fewest, base]);
        if (sorted.length < 2) continue;
        const symbol = ["circle", "rect", "triangle", "diamond", "roundRect"][style++ % 5];
        out.push({ type: "line", name: `${kind}, ${scheme}`, data: sorted, symbol, symbolSize: 8, itemStyle: { color }, lineStyle: { color, opacity: 0.8 } });
      }
      out.push({ type: "line", name: "ideal", silent: true, showSymbol: false, lineStyle: { color, type: "dashed", width: 1 }, itemStyle: { color: colours.dim }, data: [[fewest, base], [most, (base * most) / fewest]] });
    });
  if (out.length === 0) return null;
  return {
    legend: legend(colours),
    grid: { left: 80, right: 20, top: 40, bottom: 50 },
    xAxis: axis(colours, { type: "log", logBase: 2, name: "GPUs" }),
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
    yAxis: axis(colours, { type: "category", data: shown.map((row) => row.i), axisLabel: { formatter: (i) => labelOf(rows[i]), width: labelRoom(420), overflow: "truncate", fontSize: 11, interval: 0 } }),
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
  const members = visible().filter((row) => row.kg !== null).sort((a, b) => a.kg - b.kg || a.i - b.i);
  if (members.length === 0) return null;
  return barsOption(colours, members, [{ name: "carbon", color: palette[2], of: (row) => row.kg }], "kg CO2e",
    (value, row) => `${value.toPrecision(4)} kg CO2e${row.kwh === null ? "" : `, ${row.kwh.toPrecision(4)} kWh`}`);
}

// A policy's seeds as points, with the bar from the 5th to the 95th percentile.
function policiesOption(colours) {
  const shown = new Set(visible().map((row) => row.i));
  const groups = (data.seeds || []).filter((group) => shown.has(group.row)).slice(0, 40).reverse();
  if (groups.length === 0) return null;
  const bar = (params, api) => {
    const [low, middle, high] = [1, 2, 3].map((i) => api.coord([api.value(i), api.value(0)]));
    const line = (x1, y1, x2, y2, width) => ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: colours.text, lineWidth: width } });
    return { type: "group", children: [line(low[0], low[1], high[0], high[1], 1.5), line(middle[0], middle[1] - 8, middle[0], middle[1] + 8, 3)] };
  };
  const series = [];
  [["time", 3600, 0], ["usd", 1, 1]].forEach(([what, unit, at]) => {
    const values = groups.map((group) => (what === "usd" ? seedCosts(group) : group.time).filter((value) => value !== null).map((value) => value / unit).sort((a, b) => a - b));
    series.push({ type: "scatter", name: at === 0 ? "hours" : "USD", xAxisIndex: at, yAxisIndex: at, symbolSize: 6, itemStyle: { opacity: 0.45, color: palette[at] },
      data: values.flatMap((sorted, k) => sorted.map((value) => [value, k])) });
    series.push({ type: "custom", name: "5th to 95th percentile, median", xAxisIndex: at, yAxisIndex: at, renderItem: bar, silent: true, encode: { x: [1, 2, 3], y: 0 }, itemStyle: { color: colours.text },
      data: values.map((sorted, k) => [k, quantile(sorted, 0.05), quantile(sorted, 0.5), quantile(sorted, 0.95)]).filter(([, low]) => low !== null) });
  });
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
