// Charts of one run: its bill, what happened when, its steps.

const details = data.details || [];
let picked = 0;  // of details

// A choice of the run that the bill and the events are of.
function pickers() {
  for (const id of ["bill-pick", "timeline-pick"]) {
    const place = document.getElementById(id);
    if (!place || details.length < 2) continue;
    const select = make("select", {}, ...details.map((detail, k) =>
      make("option", { value: String(k), textContent: `${nameOf(rows[detail.row])}, seed ${detail.seed}` })));
    select.addEventListener("change", () => pick(Number(select.value)));
    place.append(make("label", {}, "Run: ", select), make("br"));
  }
}

function pick(k) {
  picked = k;
  // The program has made their text safe.
  for (const [name, rows] of Object.entries(details[k].tables)) document.querySelector(`#${name}-table tbody`).innerHTML = rows;
  for (const select of document.querySelectorAll("#bill-pick select, #timeline-pick select")) select.value = String(k);
  draw("timeline");
}

const kEventSymbols = { checkpoint: ["circle", "#56b4e9"], notice: ["triangle", "#e69f00"], lost: ["diamond", "#d55e00"], crashed: ["diamond", "#b02418"],
  restored: ["circle", "#009e73"], ready: ["circle", "#009e73"], finished: ["pin", "#009e73"], stage: ["rect", "#7a6fbe"], waiting: ["triangle", "#cc79a7"],
  resized: ["roundRect", "#8c8c3c"], released: ["arrow", "#9aa7b5"] };

function timelineOption(colours) {
  if (details.length === 0) return null;
  const detail = details[picked];
  const held = detail.holdings;
  const pools = [...new Set(held.map(([pool]) => pool))];
  const lanes = [...pools, "events"];
  const hours = (seconds) => seconds / 3600;
  const bar = (params, api) => {
    const [x0, y] = api.coord([api.value(1), api.value(0)]);
    const [x1] = api.coord([api.value(2), api.value(0)]);
    const height = api.size([0, 1])[1] * 0.55;
    const left = Math.max(x0, params.coordSys.x), right = Math.min(x1, params.coordSys.x + params.coordSys.width);
    if (right <= left) return null;
    const [up, asked] = [api.value(3), api.value(4)];
    const text = right - left > 60 ? (up > 0 ? `${up}${asked > 0 ? ` + ${asked} asked` : ""}` : `${asked} asked`) : "";
    return { type: "rect", shape: { x: left, y: y - height / 2, width: Math.max(1, right - left), height },
      style: { fill: up > 0 ? palette[0] : colours.line, opacity: up > 0 ? 0.85 : 1, stroke: colours.back, lineWidth: 1 },
      textContent: { style: { text, fill: up > 0 ? "#ffffff" : colours.text, fontSize: 11 } }, textConfig: { position: "inside" } };
  };
  const series = [{ type: "custom", name: "nodes", renderItem: bar, clip: true, encode: { x: [1, 2], y: 0 },
    data: held.map(([pool, from, to, up, asked]) => [lanes.indexOf(pool), hours(from), hours(to), up, asked]) }];
  const kinds = [...new Set(detail.events.map((event) => event[1]))].filter((what) => what !== "requested" && what !== "provisioned");
  for (const kind of kinds) {
    const [symbol, color] = kEventSymbols[kind] || ["circle", colours.dim];
    series.push({ type: "scatter", name: kind, symbol, symbolSize: 10, itemStyle: { color },
      data: detail.events.filter((event) => event[1] === kind).map((event) => ({ value: [hours(event[0]), lanes.length - 1], event })) });
  }
  return {
    height: 150 + 44 * lanes.length,
    legend: legend(colours, { data: kinds }),
    grid: { left: 10, right: 20, top: 40, bottom: 84, containLabel: true },
    xAxis: axis(colours, { type: "value", name: "time", min: 0, max: hours(detail.total_s), axisLabel: { showMaxLabel: false, formatter: (value) => short(value * 3600) } }),
    yAxis: axis(colours, { type: "category", data: lanes, axisLabel: { width: labelRoom(260), overflow: "truncate", fontSize: 11 } }),
    tooltip: { trigger: "item", formatter: (item) => {
      if (item.seriesType === "custom") return `${lanes[item.value[0]]}\n${item.value[3]} nodes held, ${item.value[4]} asked for\n${clock(item.value[1] * 3600)} to ${clock(item.value[2] * 3600)}`;
      const [at, what, pool, nodes, more, times] = item.data.event;
      return [`${clock(at)}: ${what}${times > 1 ? ` x${times}` : ""}`, pool, nodes > 0 ? `${nodes} nodes` : "", more].filter((line) => line).join("\n");
    } },
    dataZoom: [{ type: "inside", xAxisIndex: 0, filterMode: "none" }, { type: "slider", xAxisIndex: 0, filterMode: "none", bottom: 8, height: 22, showDataShadow: false, textStyle: { color: colours.dim }, labelFormatter: (value) => short(value * 3600) }],
    series,
  };
}

const kSpanColours = { compute: "#009e73", host: "#7a6fbe", communication: "#0072b2", exposed: "#d55e00", straggler: "#cc79a7", input: "#56b4e9", input_stall: "#e69f00", lost: "#b02418" };
const trackOf = (kind) => (kind === "communication" ? 1 : kind === "input" ? 2 : 0);

function stepsOption(colours) {
  if (!data.spans || data.spans.rows.length === 0) return null;
  const { kinds, names, rows: spans } = data.spans;
  const track = (span) => 3 * span[0] + trackOf(kinds[span[1]]);
  const tracks = [...new Set(spans.map(track))].sort((a, b) => b - a);
  const place = new Map(tracks.map((id, k) => [id, k]));
  const label = (id) => `worker ${Math.floor(id / 3)}${["", ", collectives", ", input"][id % 3]}`;
  const bar = (params, api) => {
    const [x0, y] = api.coord([api.value(1), api.value(0)]);
    const [x1] = api.coord([api.value(2), api.value(0)]);
    const left = Math.max(x0, params.coordSys.x), right = Math.min(x1, params.coordSys.x + params.coordSys.width);
    if (right < left) return null;
    const height = Math.max(2, Math.min(20, api.size([0, 1])[1] * 0.72));
    const width = Math.max(0.7, right - left);
    const text = width > 70 ? names[api.value(3)] : "";
    return { type: "rect", shape: { x: left, y: y - height / 2, width, height }, style: { fill: api.visual("color") },
      ...(text && height > 11 ? { textContent: { style: { text, fill: "#ffffff", fontSize: 10, width: width - 6, overflow: "truncate" } }, textConfig: { position: "inside" } } : {}) };
  };
  const used = kinds.map((kind, k) => [kind, k]).filter(([, k]) => spans.some((span) => span[1] === k));
  return {
    height: Math.min(900, 150 + 24 * tracks.length),
    legend: legend(colours),
    grid: { left: 10, right: 20, top: 40, bottom: 84, containLabel: true },
    xAxis: axis(colours, { type: "value", min: 0, max: spans.reduce((most, span) => Math.max(most, span[3] + span[4]), 0), name: "time", axisLabel: { showMaxLabel: false, formatter: short } }),
    yAxis: axis(colours, { type: "category", data: tracks.map(label), axisLabel: { fontSize: 11 } }),
    tooltip: { trigger: "item", formatter: (item) => `${label(tracks[item.value[0]])}\n${names[item.value[3]]} (${words(item.seriesName.replaceAll(" ", "_"))})\n${short(item.value[1])} to ${short(item.value[2])}: ${short(item.value[2] - item.value[1])}` },
    dataZoom: [{ type: "inside", xAxisIndex: 0, filterMode: "weakFilter" }, { type: "slider", xAxisIndex: 0, filterMode: "weakFilter", bottom: 8, height: 22, showDataShadow: false, textStyle: { color: colours.dim }, labelFormatter: short },
      ...(tracks.length > 30 ? [{ type: "slider", yAxisIndex: 0, right: 0, width: 14, start: 100 - 3000 / tracks.length, end: 100, filterMode: "none", showDetail: false }] : [])],
    series: used.map(([kind, k]) => ({ type: "custom", name: words(kind), renderItem: bar, clip: true, itemStyle: { color: kSpanColours[kind] || colours.dim }, encode: { x: [1, 2], y: 0 },
      data: spans.filter((span) => span[1] === k).map((span) => [place.get(track(span)), span[3], span[3] + span[4], span[2]]) })),
  };
}
