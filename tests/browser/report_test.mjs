// The report in Chromium, offline: every chart has data, filters change it, nothing is fetched, no text becomes markup.
//   node report_test.mjs PROGRAM CHROMIUM SOURCES [--screens FOLDER]
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [program, executable, sources, , screens] = process.argv.slice(2);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "ganymede-browser-"));
process.on("exit", () => fs.rmSync(folder, { recursive: true, force: true }));
const run = (...words) => execFileSync(program, words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28 });
const at = (name) => path.join(folder, name);
const read = (name) => JSON.parse(fs.readFileSync(at(name), "utf8"));
const write = (name, value) => fs.writeFileSync(at(name), JSON.stringify(value));

const kHostile = `</script><img src=x onerror="window.hacked=1">'"&lt;`;

// Every text of a result is somebody's input, but what the program itself decides by.
function hostile(value, key = "") {
  if (typeof value === "string") return ["schema", "item", "market", "event", "total_usd", "usd", "unit_price_usd", "policy", "tool"].includes(key) || /^[\d.]+$/.test(value) ? value : `${value}${kHostile}`;
  if (Array.isArray(value)) return value.map((one) => hostile(one, key));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, hostile(one, name)]));
  return value;
}

const browser = await chromium.launch({ executablePath: executable, args: ["--no-sandbox", "--disable-gpu"] });
let tests = 0;

// Opens a page offline and fails on anything that it says, fetches or lets run.
async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  const complaints = [];
  const url = pathToFileURL(at(name)).href;
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => { if (request.url() !== url && !request.url().startsWith("data:")) complaints.push(`request: ${request.url()}`); });
  const start = Date.now();
  await page.goto(url, { waitUntil: "load" });
  if (options.javaScriptEnabled !== false) await drawn(page);
  const milliseconds = Date.now() - start;
  return { page, complaints, milliseconds, done: async () => { assert.deepEqual(complaints, [], name); await context.close(); } };
}

// Charts are drawn one after the other, the first at once.
const drawn = (page) => page.waitForFunction(() => !document.documentElement.classList.contains("drawing"));

// By chart: how many data items its series have; null: empty or not drawn.
const points = async (page) => (await drawn(page), page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".chart")].map((place) => {
  const instance = echarts.getInstanceByDom(place);
  if (!instance || place.classList.contains("empty") || !place.querySelector("canvas")) return [place.id.slice(6), null];
  const count = (data) => data.reduce((sum, item) => sum + 1 + (item && item.children ? count(item.children) : 0), 0);
  return [place.id.slice(6), instance.getOption().series.reduce((sum, series) => sum + count(series.data || []), 0)];
}))));
const shown = (page) => page.locator("#candidates tbody tr").count();
// The cells of a column of the candidates, by the candidates' numbers, without the interval that stands below.
const cells = (page, heading) => page.evaluate((name) => {
  const at = [...document.querySelectorAll("#candidates thead th")].findIndex((cell) => cell.textContent === name);
  return [...document.querySelectorAll("#candidates tbody tr")].map((line) => [Number(line.dataset.row), line.cells[at].firstChild.textContent]);
}, heading);
const values = (page, filter) => page.locator(`#filter-${filter} option`).evaluateAll((all) => all.map((one) => one.value).filter((one) => one));
const series = (page, chart) => page.evaluate((id) => echarts.getInstanceByDom(document.getElementById(id)).getOption().series.map(({ name, type, itemStyle, symbol, data }) => ({ name, type, color: itemStyle?.color, symbol, count: (data || []).length })), `chart-${chart}`);
const screen = async (page, name) => { if (screens) { fs.mkdirSync(screens, { recursive: true }); await page.screenshot({ path: path.join(screens, `${name}.png`), fullPage: true }); } };

const seconds = (begin) => `${((Date.now() - begin) / 1000).toFixed(1)} s`;
async function test(what, body) {
  const begin = Date.now();
  try {
    await body();
    tests += 1;
    console.log(`ok    ${what} (${seconds(begin)})`);
  } catch (error) {
    console.log(`FAIL  ${what}\n${error.stack}`);
    process.exitCode = 1;
  }
}

fs.writeFileSync(at("scenario.json"), run("example", "scenario"));
run("simulate", "scenario.json", "--format", "json", "-o", "result.json");
run("sweep", path.join(sources, "studies/spot-deadline.json"), "--format", "json", "-o", "sweep.json");
run("sweep", path.join(sources, "studies/first-look.json"), "--format", "json", "-o", "scaling.json");
run("plan", "--model", "dcgan-64", "--images", "20000000", "--deadline", "20h", "--catalog", "aws,gcp", "--max-gpus", "4", "--format", "json", "-o", "plan.json");
run("validate", "--format", "json", "-o", "validation.json");
const report = (name) => { run("report", `${name}.json`, "-o", `${name}.html`); return `${name}.html`; };

for (const [name, charts] of Object.entries({
  result: ["ledger", "timeline", "steps", "energy"],
  sweep: ["pareto", "ledger", "timeline", "policies", "energy"],
  scaling: ["pareto", "scaling", "ledger", "timeline", "energy"],
  plan: ["pareto", "scaling", "energy"],
  validation: ["validation"],
}))
  await test(`${name}: every chart has data and a table beside it`, async () => {
    const { page, milliseconds, done } = await open(report(name));
    const found = await points(page);
    assert.deepEqual(Object.keys(found).sort(), [...charts].sort());
    for (const chart of charts) {
      assert.ok(found[chart] > 0, `${chart} has no data`);
      assert.ok(await page.locator(`section:has(#chart-${chart}) table tbody tr`).count() > 0, `${chart} has no table`);
    }
    await screen(page, name);
    // The answer stands on the first screen, in words and not in a chart.
    assert.ok(await page.locator("header .answer").evaluate((line) => line.getBoundingClientRect().bottom < innerHeight && line.textContent.length > 40));
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForTimeout(50);
    await screen(page, `${name}-dark`);
    await page.setViewportSize({ width: 420, height: 900 });
    await page.waitForTimeout(150);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 420), "the page is wider than the window");
    await screen(page, `${name}-narrow`);
    console.log(`      ${(fs.statSync(at(`${name}.html`)).size / 1e6).toFixed(2)} MB, opened in ${milliseconds} ms`);
    await done();
  });

await test("filters change the charts, the table and what is said", async () => {
  const { page, done } = await open("sweep.html");
  const before = await points(page);
  const all = await shown(page);
  await page.selectOption("#filter-policy", "fixed");
  const after = await points(page);
  assert.equal(await shown(page), 1);
  assert.ok(all > 1 && after.pareto < before.pareto && after.policies < before.policies && after.ledger < before.ledger);
  assert.match(await page.textContent("#filter-said"), /^1 of \d+/);
  await page.fill("#filter-usd", "0.000001");
  assert.equal(await shown(page), 0);
  assert.equal((await points(page)).pareto, null);
  await page.click("#filter-reset");
  assert.equal(await shown(page), all);
  assert.deepEqual(await points(page), before);
  await done();
});

// By hand, from the sweep: each seed's bill with other prices of instances, then their median.
const middle = (values) => { const all = [...values].sort((a, b) => a - b), half = (all.length - 1) / 2; return (all[Math.floor(half)] + all[Math.ceil(half)]) / 2; };
await test("what-ifs change the cost of each seed without simulating", async () => {
  const { page, done } = await open("sweep.html");
  const runs = read("sweep.json").runs;
  const policies = [...new Set(runs.map((one) => one.run.policy))];
  assert.equal(await page.locator("#candidates tbody tr").count(), policies.length);
  const cost = async (k) => Number(new Map(await cells(page, "USD")).get(k));
  for (const [price, discount] of [["1", "0"], ["3", "0"], ["1", "50"], ["2", "50"], ["0", "0"]]) {
    await page.fill("#filter-price", price);
    await page.fill("#filter-discount", discount);
    for (const [k, policy] of policies.entries()) {
      const bills = runs.filter((one) => one.run.policy === policy).map(({ cost: { total_usd, items } }) => items
        .filter((item) => item.item === "instance-hours")
        .reduce((sum, item) => sum + Number(item.usd) * (price * (item.market === "spot" ? 1 - discount / 100 : 1) - 1), Number(total_usd)));
      const found = await cost(k);
      assert.ok(Math.abs(found - middle(bills)) < 0.011, `${policy} at x${price}, -${discount} %: ${found} rather than ${middle(bills)}`);
    }
  }
  await done();
});

await test("by keyboard: sorting, zooming, choosing a run", async () => {
  const { page, done } = await open("sweep.html");
  const heading = page.locator("#candidates thead button", { hasText: /^USD$/ });
  await heading.focus();
  await page.keyboard.press("Enter");
  const costs = (await cells(page, "USD")).map(([, text]) => Number(text));
  assert.deepEqual(costs, [...costs].sort((a, b) => a - b));
  const zoom = () => page.evaluate(() => { const { start, end } = echarts.getInstanceByDom(document.getElementById("chart-timeline")).getOption().dataZoom[0]; return end - start; });
  await page.locator("#timeline .zoom button", { hasText: "Zoom in" }).focus();
  await page.keyboard.press("Space");
  assert.equal(await zoom(), 50);
  const events = await page.locator("#events-table tbody").textContent();
  await page.locator("#bill-pick select").selectOption("2");
  assert.notEqual(await page.locator("#events-table tbody").textContent(), events);
  assert.equal(await page.locator("#timeline-pick select").inputValue(), "2");
  await done();
});

await test("hostile texts stay text", async () => {
  for (const name of ["result", "sweep", "plan", "validation"]) {
    write(`hostile-${name}.json`, hostile(read(`${name}.json`)));
    const { page, done } = await open(report(`hostile-${name}`));
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.locator("img").count(), 0);
    assert.ok((await page.textContent("main")).includes(kHostile), name);
    for (const [chart, count] of Object.entries(await points(page))) assert.ok(count > 0, `${name}: ${chart}`);
    if (name === "sweep") {
      // A tooltip is drawn, not made of markup.
      await page.evaluate(() => { const chart = echarts.getInstanceByDom(document.getElementById("chart-pareto")); chart.dispatchAction({ type: "showTip", seriesIndex: chart.getOption().series.findIndex(({ type }) => type === "scatter"), dataIndex: 0 }); });
      await page.waitForTimeout(100);
      assert.equal(await page.evaluate(() => window.hacked), undefined);
    }
    await done();
  }
});

await test("without a script every number is in a table; printed too", async () => {
  const { page, done } = await open("sweep.html", { javaScriptEnabled: false });
  assert.equal(await page.locator("section .chart").first().isVisible(), false);
  assert.ok(await page.locator("#candidates").isVisible());
  await done();
  const printed = await open("sweep.html");
  await printed.page.emulateMedia({ media: "print" });
  assert.equal(await printed.page.locator("nav").isVisible(), false);
  assert.equal(await printed.page.locator("#filters").isVisible(), false);
  const hidden = await printed.page.locator(".scroll").first().evaluate((box) => box.scrollHeight - box.clientHeight);
  assert.ok(hidden <= 1, "a table is cut in print");
  await printed.page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const wide = await printed.page.evaluate(() => document.querySelector("#chart-pareto canvas").clientWidth);
  assert.ok(wide <= 700, `a chart of ${wide} pixels on paper`);
  const pages = (await printed.page.pdf({ format: "A4" })).toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  assert.ok(pages <= 6, `${pages} pages`);
  await printed.done();
});

await test("runs without a price are refused", async () => {
  const sweep = read("scaling.json");
  sweep.runs[1].cost.total_usd = "inf";
  write("unpriced.json", sweep);
  assert.throws(() => report("unpriced"));
});

await test("empty studies and single runs are pages too", async () => {
  const sweep = read("scaling.json");
  write("single.json", { ...sweep, runs: sweep.runs.slice(0, 1) });
  const single = await open(report("single"));
  assert.ok((await points(single.page)).ledger > 0);
  await single.done();
  write("empty.json", { ...sweep, runs: [], groups: [], rankings: [] });
  const empty = await open(report("empty"));
  assert.match(await empty.page.textContent("main"), /no finished run/);
  await empty.done();
});

await test("a Gantt chart of very many spans is drawn with fewer", async () => {
  const result = read("result.json");
  const span = result.step_spans.rows;
  const length = Math.max(...span.map((row) => row[3] + row[4]));
  result.step_spans.rows = Array.from({ length: Math.ceil(50000 / span.length) }, (_, k) => span.map(([worker, kind, name, start, seconds]) => [worker, kind, name, start + k * length, seconds])).flat();
  assert.ok(result.step_spans.rows.length > 40000);
  write("many.json", result);
  const { page, done } = await open(report("many"));
  const { steps } = await points(page);
  assert.ok(steps > 5000 && steps <= 20000, `${steps} spans`);
  assert.match(await page.textContent("#steps"), /export perfetto/);
  await done();
});

await test("2,000 runs", async () => {
  const sweep = read("sweep.json");
  const runs = Array.from({ length: 2000 }, (_, i) => {
    const one = structuredClone(sweep.runs[i % sweep.runs.length]);
    one.run.allocation = `${1 + i} x p3.8xlarge`;
    one.time.total_s *= 1 + i / 2000;
    return one;
  });
  write("large.json", { ...sweep, runs, groups: [], rankings: [] });
  const { page, milliseconds, done } = await open(report("large"));
  assert.equal(await shown(page), 50);
  assert.match(await page.textContent("#filter-said"), /^2000 of 2000/);
  await page.click("#more-candidates");
  assert.equal(await shown(page), 450);
  const size = fs.statSync(at("large.html")).size;
  assert.ok(size < 5e6, `${size} bytes`);
  await screen(page, "large");
  console.log(`      ${(size / 1e6).toFixed(2)} MB, opened in ${milliseconds} ms`);
  await done();
});

// What a plan would say of its cheapest candidate among these: it meets the goals, doubtful prices are at their high ends.
const cheapestOf = (simulated) => simulated.filter((one) => one.verdict === "meets").reduce((best, one) => (one.usd.at_worst_prices < best.usd.at_worst_prices ? one : best));

await test("a plan of 17,000 candidates holds them all: no filter leaves a dearer one than there is", async () => {
  const plan = read("plan.json");
  const some = plan.simulated;
  const simulated = Array.from({ length: 17000 }, (_, i) => {
    const one = structuredClone(some[i % some.length]);
    const factor = 1 + ((i * 7919) % 17000) / 17000;
    one.chosen = one.chosen && i < some.length;
    for (const what of ["time_s", "usd"]) Object.assign(one[what], { median: one[what].median * factor, interval: one[what].interval.map((end) => end * factor) });
    one.usd.at_worst_prices *= factor;
    one.region = `${one.region}-${i % 30}`;
    return one;
  });
  write("whole.json", { ...plan, simulated });
  const { page, milliseconds, done } = await open(report("whole"));
  const size = fs.statSync(at("whole.html")).size;
  console.log(`      ${(size / 1e6).toFixed(2)} MB, opened in ${milliseconds} ms`);
  assert.ok(size < 3e6, `${size} bytes`);
  let slowest = 0;
  for (const filter of ["market", "provider", "gpu", "region"])
    for (const value of (await values(page, filter)).slice(0, 4)) {
      slowest = Math.max(slowest, await page.evaluate(([id, wanted]) => {
        const select = document.getElementById(id), start = performance.now();
        select.value = wanted;
        select.dispatchEvent(new Event("change", { bubbles: true }));
        return performance.now() - start;
      }, [`filter-${filter}`, value]));
      const left = simulated.filter((one) => one[filter] === value);
      const said = await page.textContent("#filter-said");
      assert.ok(said.startsWith(`${left.length} of 17000;`), said);
      if (left.some((one) => one.verdict === "meets")) {
        const expected = cheapestOf(left).usd.median;
        assert.ok(said.includes(`${expected < 1 ? expected.toFixed(4) : expected.toFixed(2)} USD`), `${value}: ${said}, expected ${expected}`);
      }
      await page.click("#filter-reset");
    }
  console.log(`      the slowest filter took ${slowest.toFixed(0)} ms`);
  await done();
});

await test("what misses a goal lies in a shade", async () => {
  const plan = read("plan.json"), chosen = plan.chosen;
  write("goals.json", { ...plan, request: { ...plan.request, deadline: "1h", deadline_s: 2 * chosen.time_s.median, budget_usd: (2 * chosen.usd.median).toFixed(2) } });
  const { page, done } = await open(report("goals"));
  const shades = await page.evaluate(() => echarts.getInstanceByDom(document.getElementById("chart-pareto")).getZr().storage.getDisplayList()
    .filter(({ type, style, shape }) => type === "rect" && style.fill === "#d55e00" && style.opacity < 1 && shape.width > 0 && shape.height > 0).length);
  assert.equal(shades, 2);
  await screen(page, "goals");
  await done();
});

await test("a provider keeps its colour, a market its shape; one point an instance and count; marks are 1, 2 and 5", async () => {
  const { page, done } = await open("plan.html");
  const drawnAs = async () => new Map((await series(page, "pareto")).filter(({ type }) => type === "scatter").map(({ name, color, symbol, count }) => [name, { color, symbol, count }]));
  const before = await drawnAs();
  const kinds = new Set(read("plan.json").simulated.map((one) => [one.provider, one.market, one.nodes, one.instance].join()));
  const count = [...before.values()].reduce((sum, one) => sum + one.count, 0);
  assert.ok(count >= kinds.size && count < kinds.size + 20, `${count} points of ${kinds.size} instances and counts`);
  for (const provider of await values(page, "provider")) {
    await page.selectOption("#filter-provider", provider);
    for (const [name, { color, symbol }] of await drawnAs()) assert.deepEqual([color, symbol], [before.get(name).color, before.get(name).symbol], name);
    await page.click("#filter-reset");
  }
  const axes = await page.evaluate(() => { const { xAxis, yAxis } = echarts.getInstanceByDom(document.getElementById("chart-pareto")).getOption(); return [xAxis[0], yAxis[0]].map(({ type, axisLabel }) => [type, axisLabel.customValues]); });
  for (const [type, marks] of axes) {
    assert.ok(marks.length > 2, String(marks));
    // By factors the marks themselves are 1, 2 or 5 times a power of ten, else their distance.
    for (const value of type === "log" ? marks : [marks[1] - marks[0]]) assert.match(value.toExponential(6), /^[125]\.0+e/);
  }
  assert.ok(await page.locator(".badge").count() > 2);
  assert.ok(await page.locator("header .card").count() > 0);
  // The first column stays in sight.
  await page.setViewportSize({ width: 420, height: 900 });
  const moved = await page.evaluate(() => { const box = document.querySelector(".scroll:has(#candidates)"); box.scrollLeft = 300; return document.querySelector("#candidates tbody td").getBoundingClientRect().left - box.getBoundingClientRect().left; });
  assert.ok(moved < 5, `the first column is at ${moved}`);
  await done();
});

await test("the first screen of a plan explains itself, and no column of its offers is cut off", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { page, done } = await open("plan.html", { colorScheme });
    assert.ok(await page.locator("#best-of-each").evaluate((table) => table.scrollWidth <= table.parentElement.clientWidth), "the offers are wider than their box");
    const headings = await page.locator("#best-of-each thead th").allTextContents();
    for (const wanted of ["USD/h", "interruptions", "goals met"]) assert.ok(headings.includes(wanted), wanted);
    const places = await page.locator("#best-of-each tbody td:first-child").evaluateAll((all) => all.map((cell) => cell.firstChild.textContent));
    const markets = places.map((place) => `${place.split(" ")[0]} ${place.split(" ").slice(2).join(" ")}`);
    assert.equal(new Set(markets).size, markets.length, `a market is listed twice: ${markets}`);
    assert.match(await page.textContent("header"), /Ranges hold about 90 %/);
    const claims = [await page.textContent("header .answer"), await page.textContent("#best-of-each"), ...(await cells(page, "goals met")).map(([, text]) => text)].join();
    assert.ok(/all of 20/.test(claims) && !/99\.\d %|100\.0 %/.test(claims), "more is claimed than 20 runs can say");
    await page.getByText("What the words mean").click();
    assert.ok(await page.locator(".words dt", { hasText: "kernel model" }).isVisible());
    assert.ok(await page.locator(".words dt", { hasText: "spot-first" }).isVisible());
    for (const card of await page.locator("header .card").all()) assert.match(await card.textContent(), /USD\/h/);
    await done();
  }
});

await test("without goals nothing is said to meet them", async () => {
  const plan = read("plan.json");
  write("aimless.json", { ...plan, request: { ...plan.request, deadline: null, deadline_s: null, budget_usd: null } });
  const { page, done } = await open(report("aimless"));
  const headings = await page.locator("#candidates thead th").allTextContents();
  assert.ok(headings.includes("finishes") && !headings.includes("goals met"), headings.join());
  await done();
});

await test("studies have their titles in the legend of predictions", async () => {
  const { page, done } = await open("validation.html");
  const { studies } = read("validation.json"), names = new Set((await series(page, "validation")).map(({ name }) => name));
  for (const { title, cells } of studies) if (cells.some((cell) => cell.predicted > 0 && cell.measured > 0)) assert.ok(names.has(title), title);
  await done();
});

await test("a filter answers in words and in the table before it draws", async () => {
  const { page, done } = await open("plan.html");
  const [value] = await values(page, "market");
  const [said, drawing] = await page.evaluate((wanted) => {
    const select = document.getElementById("filter-market");
    select.value = wanted;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    return [document.getElementById("filter-said").textContent, document.documentElement.classList.contains("drawing")];
  }, value);
  assert.ok(!said.startsWith(`${read("plan.json").simulated.length} of`), said);
  assert.ok(drawing);
  await drawn(page);
  await done();
});

await test("the bill is a tree with bars, the same with and without a script", async () => {
  const { page, done } = await open("sweep.html");
  const tree = () => page.evaluate(() => [...document.querySelectorAll("#bill-table tbody tr")].map((line) => [line.className, ...[...line.cells].map((cell) => cell.textContent), Number(line.querySelector("rect").getAttribute("width"))]));
  const before = await tree();
  assert.equal(before[0][0], "d0");
  assert.equal(before[0].at(-1), 100);
  assert.ok(before.some(([depth]) => depth === "d4"));
  await page.locator("#bill-pick select").selectOption("1");
  assert.notDeepEqual(await tree(), before);
  await page.locator("#bill-pick select").selectOption("0");
  assert.deepEqual((await tree()).map((line) => line.slice(0, -1)), before.map((line) => line.slice(0, -1)));
  await done();
});

// A cluster, and a life with more kinds of events than fit beside one another.
fs.writeFileSync(at("cluster-input.json"), run("example", "cluster"));
run("simulate", "cluster-input.json", "--format", "json", "-o", "cluster.json");
const lived = read("result.json");
lived.events = ["requested", "ready", "checkpoint", "straggler", "recovered", "notice", "lost", "crashed", "restored", "resized", "released", "waiting", "evaluated", "stage", "checkpoint-failed", "finished"]
  .map((event, i) => ({ at_s: (lived.time.total_s * i) / 15, event, ...(i === 0 ? { pool: "p3 us-east-1 on-demand", nodes: 2 } : {}) }));
write("life.json", { schema: "ganymede.rehearsal/1", scenario: "life", predicted: lived, measured: lived, hosts: 4, network: "paced", took_s: 60, scale: 0.1, steps_each: 10,
  processes: { nodes_started: 2, nodes_killed: 1, trainings_started: 2, steps_played: 9, checkpoints_written: 1, checkpoints_read: 1 },
  comparison: [{ what: "time", unit: "s", predicted: 1, measured: 1, off: 0, share: 1 }], decisions: { same: true, predicted: [], measured: [] } });

// Elements beyond the window, captions beyond their box, and words of pictures beyond the picture.
const overruns = (page) => page.evaluate(() => {
  const beyond = (inner, outer) => inner.right > outer.right + 1 || inner.left < outer.left - 1;
  const said = (element) => `${element.tagName} ${element.id} ${element.className.baseVal ?? element.className}: ${element.textContent.slice(0, 40)}`;
  const window = { left: 0, right: document.documentElement.clientWidth };
  return [
    ...[...document.querySelectorAll("body *")].filter((one) => !one.parentElement.closest(".scroll, pre, svg") && beyond(one.getBoundingClientRect(), window)),
    ...[...document.querySelectorAll(".scroll caption")].filter((one) => beyond(one.getBoundingClientRect(), one.closest(".scroll").getBoundingClientRect())),
    ...[...document.querySelectorAll("svg text")].filter((one) => beyond(one.getBoundingClientRect(), one.closest("svg").getBoundingClientRect())),
  ].map(said);
});

// The texts of each chart as they are drawn: what they say, their font and their place.
const chartTexts = (page) => page.evaluate(() => [...document.querySelectorAll(".chart canvas")].map((canvas) => {
  const place = canvas.closest(".chart"), placed = (element) => { const rect = element.getBoundingRect().clone(); if (element.transform) rect.applyTransform(element.transform); return rect; };
  const texts = echarts.getInstanceByDom(place).getZr().storage.getDisplayList()
    .filter((one) => one.type === "tspan" && one.style.text && !one.ignore && !one.invisible && one.style.opacity !== 0)
    // What a clip hides, such as the other pages of a legend, is not seen.
    .filter((one) => (one.__clipPaths || []).every((clip) => { const [inner, outer] = [placed(one), placed(clip)]; return inner.x >= outer.x - 1 && inner.x + inner.width <= outer.x + outer.width + 1; }))
    .map((one) => { const { x, y, width, height } = placed(one); return { text: one.style.text, font: one.style.font, box: [x, y, x + width, y + height] }; });
  const pen = document.createElement("canvas").getContext("2d");
  const [legend] = echarts.getInstanceByDom(place).getOption().legend || [];
  return { chart: place.id, legend: legend?.type, width: place.clientWidth, height: place.clientHeight, texts: texts.map((one) => { pen.font = "1px monospace"; pen.font = one.font; return { ...one, known: pen.font !== "1px monospace" }; }) };
}));
const overlap = (a, b) => Math.min(a[2], b[2]) - Math.max(a[0], b[0]) > 1 && Math.min(a[3], b[3]) - Math.max(a[1], b[1]) > 3;

for (const width of [390, 1280])
  for (const name of ["result", "sweep", "scaling", "plan", "validation", "cluster", "life"])
    await test(`${name} at ${width} pixels: nothing is cut off, no label lies on another`, async () => {
      const { page, done } = await open(report(name), { viewport: { width, height: 900 } });
      assert.deepEqual(await overruns(page), []);
      if (width === 1280)
        assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll(".scroll table")].filter((one) => one.scrollWidth > one.parentElement.clientWidth).map((one) => one.caption.textContent)), [], "wider than the page");
      for (const { chart, legend, width: most, texts } of await chartTexts(page)) {
        // The titles of twenty studies take pages; all other legends are seen whole.
        if (name !== "validation") assert.notEqual(legend, "scroll", chart);
        assert.ok(texts.length > 2, chart);
        for (const { text, font, known, box } of texts) {
          assert.ok(known, `${chart}: a canvas does not know the font ${font}`);
          assert.ok(box[0] > -1 && box[2] < most + 1, `${chart}: "${text}" from ${box[0]} to ${box[2]} of ${most}`);
        }
        texts.forEach((one, i) => texts.slice(i + 1).forEach((other) => assert.ok(!overlap(one.box, other.box), `${chart}: "${one.text}" lies on "${other.text}"`)));
      }
      await screen(page, `${name}-${width}`);
      await done();
    });

await test("names of the Pareto set hide no point, and the chosen one has its name", async () => {
  for (const width of [390, 1280]) {
    const { page, done } = await open("plan.html", { viewport: { width, height: 900 } });
    const points = await page.evaluate(() => {
      const chart = echarts.getInstanceByDom(document.getElementById("chart-pareto"));
      return chart.getOption().series.filter(({ type }) => type === "scatter").flatMap(({ data }) => data.map(({ value }) => chart.convertToPixel({ xAxisIndex: 0, yAxisIndex: 0 }, value)));
    });
    const names = (await chartTexts(page)).find(({ chart }) => chart === "chart-pareto").texts.filter(({ text }) => /^\d+ x /.test(text));
    assert.ok(names.some(({ font, text }) => /bold/.test(font) && text.endsWith(read("plan.json").chosen.instance)), "the chosen one has no name");
    for (const { text, font, box } of names)
      if (!/bold/.test(font)) assert.ok(!points.some(([x, y]) => x > box[0] && x < box[2] && y > box[1] && y < box[3]), `"${text}" hides a point`);
    await done();
  }
});

await test("a plan's scaling is that of training: no wait for a node is in it", async () => {
  const { page, done } = await open("plan.html");
  const { simulated, request } = read("plan.json");
  const lines = await page.evaluate(() => echarts.getInstanceByDom(document.getElementById("chart-scaling")).getOption().series.filter(({ name }) => name !== "ideal").map(({ name, data }) => [name, data]));
  assert.ok(lines.length > 1);
  for (const [gpu, points] of lines)
    for (const [gpus, rate] of points) {
      const highest = Math.max(...simulated.filter((one) => one.gpu === gpu && one.gpus === gpus && one.policy === "fixed").map((one) => one.images_per_s));
      assert.ok(Math.abs(rate / highest - 1) < 1e-3, `${gpus} x ${gpu}: ${rate} rather than ${highest}`);
    }
  // On demand and on spot the same nodes train as fast.
  for (const one of simulated) assert.ok(one.images_per_s * one.time_s.median >= request.images * 0.97, `${one.instance} trains longer than its whole time`);
  const kinds = new Map();
  for (const one of simulated.filter(({ policy, losses_mean }) => policy === "fixed" && losses_mean === 0)) {
    const key = [one.provider, one.instance, one.nodes, one.gpus, one.batch_per_gpu, one.scheme].join();
    assert.ok(Math.abs(one.images_per_s / (kinds.get(key) ?? one.images_per_s) - 1) < 0.02, key);
    kinds.set(key, one.images_per_s);
  }
  await done();
});

await test("carbon is compared between providers and kinds of GPU, not between twins", async () => {
  const { page, done } = await open("plan.html");
  const shown = await page.evaluate(() => echarts.getInstanceByDom(document.getElementById("chart-energy")).getOption().yAxis[0].data);
  const { simulated } = read("plan.json"), known = simulated.filter((one) => one.kg_co2e !== null);
  const kind = (one) => `${one.provider} ${one.gpu}`;
  assert.equal(shown.filter((i) => !simulated[i].chosen).length, new Set(shown.filter((i) => !simulated[i].chosen).map((i) => kind(simulated[i]))).size);
  for (const of of new Set(known.map(kind))) {
    const least = Math.min(...known.filter((one) => kind(one) === of).map((one) => one.kg_co2e.median));
    assert.ok(shown.some((i) => kind(simulated[i]) === of && Math.abs(simulated[i].kg_co2e.median / least - 1) < 0.01), of);
  }
  assert.ok(shown.some((i) => simulated[i].chosen), "what the plan chose is not there");
  await done();
});

await browser.close();
console.log(`${tests} tests passed${process.exitCode ? ", others failed" : ""}`);
