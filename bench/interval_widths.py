#!/usr/bin/env python3
"""Makes the widths of `validate`'s intervals (calibration/interval_classes.cpp) by conformal prediction over publications.

    ganymede validate --format json > validation.json && python3 bench/interval_widths.py validation.json

The half-width of a step's interval, as a logarithm, is a factor times the root of the sum of squares of: what a published
figure repeats within, half of what pauses take, the share of the step that workers who differ add, what the error of a
collective alone makes of the share of collectives, and a floor of 0.1. The factor is the 90 % quantile of the error over
that root where each publication counts once and one more that is not known is as far off as can be. The program prints
it, and how many cells it holds, and of publications on average, if it has not seen the publication: of all, and by kind;
a kind with fewer than ten publications (*) has the factor of all. Cells whose batch was not measured are left out.

For collectives it runs bench/nccl_logs.py's comparisons and prints the 90 % quantile in the same way, by evidence: links as a
machine states them, links fitted to a log's smallest and largest size, and a log's own sizes, each left out.
"""
import csv
import json
import math
import os
import re
import sys
import tempfile

import nccl_logs

FLOOR, GRAPH_OVER_ASSUMED_NETWORK = 0.1, 0.6
CALIBRATED = 10  # publications
# Logs of GPUs that exchange through their host's memory.
THROUGH_HOST = {"rtx2080ti_2_pcie", "a40_2_no_p2p", "rtx4090_2_pix", "rtx4090_2_sys", "rtx4090_4", "rtx4090_8", "rtx5090_4",
                "k80_4_azure", "a100_4_no_p2p", "pair_no_nvlink", "pairs_no_nvlink_4"}


def rows_of(result):
    rows = []
    for study in result["studies"]:
        for cell in study["cells"] if study["in_totals"] else []:
            if "parts" not in cell or "alternative" in cell or "other batch" in cell["evidence"]:
                continue
            parts = cell["parts"]
            step, several = parts["step_s"], "several machines" in cell["evidence"]
            assumed = several and cell["executor"] == "graph" and cell["evidence"].startswith("assumed")
            assumed = assumed and not cell["evidence"].endswith("servers")
            squares = [1.6449 * math.sqrt(2) * cell["repeat"], 0.5 * parts["pause_s"] / (step + parts["pause_s"]),
                       parts["links_half_width"], (step - parts["alone_s"] - parts["collectives_s"]) / step,
                       GRAPH_OVER_ASSUMED_NETWORK if assumed else FLOOR]
            rows.append({"source": re.split(r"[,:]| at commit", study["source"])[0],
                         "kinds": ["all", "several machines" if several else "one machine",
                                   f"{'several machines' if several else 'one machine'}, {cell['executor']}"],
                         "error": abs(math.log(step / parts["measured_s"])) / math.hypot(*squares),
                         "width": math.hypot(*squares)})
    return rows


def quantile(rows, share=0.9):
    """Of the errors, each source counting once, beside one that is not known."""
    sources = {}
    for row in rows:
        sources.setdefault(row["source"], []).append(row["error"])
    below = 0.0
    for error, weight in sorted((error, 1 / len(errors)) for errors in sources.values() for error in errors):
        below += weight / (len(sources) + 1)
        if below >= share - 1e-9:  # sums of shares are not exact
            return error
    return math.inf


def left_out(rows, kind):
    """Sources of a kind, cells, the share of cells and of sources that widths of other sources hold, their mean width."""
    cells, held, widths = 0, [], []
    for source in sorted({row["source"] for row in rows if kind in row["kinds"]}):
        factor = quantile([row for row in rows if row["source"] != source])
        own = [row for row in rows if row["source"] == source and kind in row["kinds"]]
        held.append((sum(row["error"] <= factor for row in own), len(own)))
        widths += [factor * row["width"] for row in own]
        cells += len(own)
    return len(held), cells, sum(n for n, _ in held) / cells, sum(n / m for n, m in held) / len(held), sum(widths) / cells


def print_kinds(rows):
    print(f"factor {quantile(rows):.2f}")
    for kind in sorted({kind for row in rows for kind in row["kinds"]}):
        sources, cells, held, of_sources, width = left_out(rows, kind)
        print(f"  {kind}: {sources} sources{'' if sources >= CALIBRATED else ' (*)'}, {cells} cells, held by widths that have not "
              f"seen the source {100 * held:.0f} % ({100 * of_sources:.0f} % of a source's), mean half-width {width:.2f}")


def source_of(text, before):
    """The publication of a log: its repository, or else what its source is called; "the same" is that before."""
    repository = re.match(r"[\w.-]+/[\w.-]+", text)
    return before if text.startswith("the same") else repository[0] if repository else re.split(r"[,;]", text)[0]


def collective_rows(program):
    """Errors by size, from 1 MiB on: of a log's sizes by the others, by its links of two sizes, and by the stated machine alone."""
    rows, source = [], ""
    with tempfile.TemporaryDirectory() as folder:
        for name, (_, ranks, catalog, instance, nodes, scheme, text) in nccl_logs.LOGS.items():
            source = source_of(text, source)
            log, where = os.path.join(folder, name), "several machines" if nodes > 1 else "one machine"
            nccl_logs.write_log(name, ranks, log)
            machine = ["--catalog", catalog, "--instance", instance, "--nodes", str(nodes), "--gpus-per-node", str(ranks // nodes),
                       "--scheme", scheme]
            done = nccl_logs.run([program, "import", "nccl-tests", log, *machine])
            large = [row for row in json.loads(done.stdout)["fit"]["rows"] if row["bytes"] >= 1 << 20]
            stated = nccl_logs.run([program, "allreduce", *machine, "--collective",
                                    nccl_logs.COLLECTIVES.get(name, "all_reduce").replace("_", "-"), "--bytes",
                                    ",".join(str(row["bytes"]) for row in large), "--format", "csv"])
            times = {int(row["bytes"]): float(row["time_s"]) for row in csv.DictReader(stated.stdout.splitlines())}
            through = ", through host memory" if name in THROUGH_HOST else ""
            for row in large:
                known = {f"stated, {where}{through}": times[row["bytes"]]}
                if not row["fitted"]:
                    known |= {f"a log's own sizes, {where}": row["predicted_s"], f"two sizes fitted, {where}": row["links_s"]}
                rows += [{"source": source, "kinds": [kind], "error": abs(math.log(time / row["measured_s"])), "width": 1}
                         for kind, time in known.items() if time]
    return rows


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        print_kinds(rows_of(json.load(file)))
    rows = collective_rows(os.path.join(nccl_logs.HERE, "../../build/release/bin/ganymede"))
    for kind in sorted({kind for row in rows for kind in row["kinds"]}):
        print(f"collectives, {kind}:", end=" ")
        print_kinds([dict(row, kinds=["all"]) for row in rows if kind in row["kinds"]])


if __name__ == "__main__":
    main()
