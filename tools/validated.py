#!/usr/bin/env python3
"""Writes the figures of README.md and studies/ that `ganymede validate` and bench/nccl_logs.py measure.

  tools/validated.py [--check] [--program build/release/bin/ganymede]

A page holds them between `<!-- validated: WHAT -->` and `<!-- /validated -->`; nobody types them. WHAT is `all` (by kind of
evidence), `studies` (a row a study, of times alone), `papers` (a row for each table of the five papers), `curve` (the
recorded quality.json of the page's folder) or `cells` (the study of the page's folder: its runs, its claims, and a row for
each series, or for each `; NAME=PATTERN` that follows, where PATTERN is found in "series, cell, tags, evidence"). With
--check nothing is written: the program prints what differs and fails, as a test of the documentation does.

bench/priors.json has the hash of every constant that a prediction rests on, and which studies and logs had been read
when it was made. Where a constant has changed since, all that is there now counts as seen; a study or a log that comes
later, before the next change, was predicted blind.
"""
import argparse
import difflib
import glob
import hashlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"(<!-- validated: (\w+)((?:;\s[^;]*?)*)\s*-->\n).*?(<!-- /validated -->)", re.S)
PRIORS = os.path.join(ROOT, "bench/priors.json")
CONSTANTS = ["calibration/worker_variation.hpp", "calibration/batch_step.*", "calibration/interval_classes.cpp",
             "calibration/gpu_transfer.cpp", "calibration/kernel_steps.*", "calibration/tpu_steps.cpp", "calibration/kernels/*.cpp", "sim/collectives/nccl_*.cpp",
             "sim/collectives/host_paths.cpp", "sim/collectives/server_placement.cpp", "sim/steps/interference.cpp",
             "platforms/measured_collective.cpp", "platforms/catalog/*.json"]
PAPERS = ["multi_gpu_mirrored_2023", "distributed_gans_2025", "resource_aware_2025", "kubernetes_platforms",
          "infrastructure_survey"]
CALIBRATED = 10  # sources; a class with fewer has no interval that is calibrated on sources left out


def constants_of(path):
    """What a change of a constant changes, and a change of a comment does not."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith(".json"):  # of a catalog: links and GPUs, not prices
        found = re.findall(r'"(?:latency|bandwidth|per_flow|rendezvous|burst|memory_bandwidth|fp32|tensor)": "[^"]*"', text)
    else:
        found = re.findall(r"(?<![\w.])\d[\w.']*(?:e-?\d+)?", re.sub(r"//[^\n]*", "", text))
    return " ".join(found)


def priors(names):
    """The file's text: hashes of the constants now, and what of `names` was read before they were frozen."""
    files = sorted({path for pattern in CONSTANTS for path in glob.glob(os.path.join(ROOT, pattern))})
    hashes = {os.path.relpath(path, ROOT): hashlib.sha256(constants_of(path).encode()).hexdigest()[:16] for path in files}
    known = {}
    if os.path.exists(PRIORS):
        with open(PRIORS, encoding="utf-8") as file:
            known = json.load(file)
    seen = known["seen"] if known.get("constants") == hashes else sorted(names)
    return json.dumps({"constants": hashes, "seen": [name for name in seen if name in names]}, indent=1) + "\n"


def percent(share, digits=1):
    return f"{100 * share:.{digits}f} %"


def table(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head)] + rows) + "\n"


def predicted(study, quantity="time"):
    return [cell for cell in study["cells"]
            if "predicted" in cell and "alternative" not in cell and cell.get("quantity", "time") == quantity]


def errors(cells):
    return [abs(cell["error"]) for cell in cells]


def ideal(cells):
    found = [abs(base["error"]) for cell in cells for base in cell["baselines"] if base["name"] == "no communication"]
    return percent(statistics.mean(found)) if found else ""


def held(cells):
    return percent(statistics.mean(cell["interval_holds"] for cell in cells), 0)


def figures(cells):
    return [str(len(cells)), percent(statistics.mean(errors(cells))), percent(max(errors(cells))), ideal(cells), held(cells)]


def all_kinds(result, logs):
    kinds = {"a training on one machine": lambda e, s: "one machine, measured" in e,
             "… of these, GANs": lambda e, s: "one machine, measured" in e and s.startswith(("style", "multi")),
             "… with fewer images a pass than measured": lambda e, s: "other batch" in e,
             "a training over several machines": lambda e, s: "several machines, measured" in e}
    rows = []
    for kind, belongs in kinds.items():
        found = [(re.split(r"[,:]| at commit", study["source"])[0], cell) for study in result["studies"] if study["in_totals"] for cell in predicted(study)
                 if cell["evidence"].split(",")[0] != "collective" and belongs(cell["evidence"], study["name"])]
        cells, sources = [cell for _, cell in found], len({name for name, _ in found})
        rows.append([kind, percent(statistics.mean(errors(cells))), ideal(cells), held(cells), str(len(cells)),
                     f"{sources}{'' if sources >= CALIBRATED else ' (*)'}"])
    for kind, found in logs.items():
        large = [row["errors"][2] for row in found if row["group"] != "check" and row["errors"][2]["sizes"]]
        mean = math.expm1(statistics.mean(math.log1p(one["error"]) for one in large))
        line = math.expm1(statistics.mean(math.log1p(one["line"]) for one in large))
        rows.append([kind, percent(mean), f"{percent(line)} (a straight line)" if line else "", "",
                     str(sum(one["sizes"] for one in large)), str(len({row["source"] for row in found}))])
    return table(["predicted", "error", "no communication", "in the 90 % interval", "figures", "sources"], rows)


def all_studies(result):
    rows = []
    for study in result["studies"]:
        cells = predicted(study)
        star = "" if study["in_totals"] else " (*)"
        claims = sum(claim["holds"] == claim["expected"] for claim in study["claims"])
        rows.append([f"[{study['name']}]{star}"] + (figures(cells) if cells else [""] * 5) +
                    [f"{claims} of {len(study['claims'])}" if study["claims"] else ""])
    all_cells = [cell for study in result["studies"] if study["in_totals"] for cell in predicted(study)]
    rows.append(["all but (*)"] + figures(all_cells) + [""])
    return table(["study", "figures", "error", "worst", "ideal", "held", "claims"], rows)


def all_papers(result):
    """Every figure of the five papers by its table: what is predicted, calibrates, or is not predicted."""
    rows = []
    for study in result["studies"]:
        if study["name"] not in PAPERS:
            continue
        groups = {}
        for cell in study["cells"]:
            if cell["role"] != "shown" and "alternative" not in cell:
                tag = next((tag for tag in cell.get("tags", []) if tag.startswith("table")), "elsewhere")
                groups.setdefault((tag, cell.get("quantity", "time")), []).append(cell)
        for (tag, quantity), cells in sorted(groups.items()):
            found = [cell for cell in cells if "predicted" in cell]
            rows.append([f"[{study['name']}]", tag, quantity, str(len(cells)),
                         str(sum(cell["role"] == "fit" for cell in cells)),
                         str(sum(cell["role"] == "none" for cell in cells)), str(len(found))] +
                        ([percent(statistics.mean(errors(found))), percent(max(errors(found))), held(found)] if found
                         else ["", "", ""]))
        if study["claims"]:
            rows.append([f"[{study['name']}]", "claims", "", str(len(study["claims"])), "", "", "", "", "",
                         f"{sum(claim['holds'] for claim in study['claims'])} hold"])
    return table(["paper", "of", "quantity", "figures", "fitted", "not predicted", "predicted", "error", "worst", "held"],
                 rows)


def run_rows(study):
    """What the study says of whole runs: predictions, then what nobody measured, then what nothing predicts."""
    runs = [cell for cell in study["cells"] if cell["series"] == "runs"]
    out = []
    rows = [[cell["what"], f"{cell['measured']:.4g} {cell['unit']}", f"{cell['predicted']:.4g}",
             f"{100 * cell['error']:+.1f} %"] for cell in runs if "predicted" in cell]
    if rows:
        out.append(table(["", "measured", "predicted", "error"], rows))
    rows = [[cell["what"], f"{cell['simulated']:.4g} {cell['unit']}"] for cell in runs if cell["role"] == "shown"]
    if rows:
        out.append(table(["not measured", "simulated"], rows))
    reasons = {}
    for cell in runs:
        if cell["role"] == "none":
            reasons.setdefault(cell["because"], []).append(f"{cell['what']} ({cell['measured']:.4g})")
    if reasons:
        out.append("**Not predicted**, with what was measured:\n\n" + "".join(
            textwrap.fill(f"- {'; '.join(what)}: because {why}.", 100, subsequent_indent="  ", break_on_hyphens=False) + "\n"
            for why, what in reasons.items()))
    return "\n".join(out)


def cells_of(study, patterns):
    cells, out = [cell for cell in study["cells"] if "predicted" in cell], run_rows(study)
    groups = {}
    for cell in cells:
        if cell["series"] == "runs":
            continue
        text = f"{cell['series']}, {cell['what']}, {', '.join(cell.get('tags', []))}, {cell['evidence']}"
        other = " (other reading)" if "alternative" in cell else ""
        found = [name for name, pattern in patterns if re.search(pattern, text)] if patterns else [cell["series"]]
        for name in found:
            groups.setdefault(name + other, []).append(cell)
    if groups:
        out += ("\n" if out else "") + table(["", "figures", "error", "worst", "ideal", "held"],
                                             [[name] + figures(found) for name, found in groups.items()])
    if study["claims"]:
        words = {(True, True): "holds", (False, False): "does not hold, as expected", (False, True): "DOES NOT HOLD",
                 (True, False): "HOLDS, not expected"}
        out += ("\n" if out else "") + table(["claim", "", "apart", "more than such a ratio may be off"],
                                             [[claim["text"], words[claim["holds"], claim["expected"]],
                                               percent(abs(claim["margin"])), "no" if claim["within_error"] else "yes"]
                                              for claim in study["claims"]])
    return out


def curve_of(name):
    """FID by images of the curves in the study's quality.json."""
    with open(os.path.join(ROOT, "studies", name, "quality.json"), encoding="utf-8") as file:
        curves = json.load(file)["curves"]
    images = [point["images"] for point in curves[0]["points"]][1::2]
    return table(["batch"] + [f"FID after {count:,.0f}" for count in images],
                 [[str(curve["batch"])] + [f"{point['fid']:.0f}" for point in curve["points"] if point["images"] in images]
                  for curve in curves])


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    result = output_of([options.program, "validate", "--format", "json"])
    bench = [sys.executable, os.path.join(ROOT, "bench/nccl_logs.py"), "--program", options.program, "--format", "json"]
    logs = {"an all-reduce from 1 MiB, nothing fitted (seen)": output_of(bench + ["--nothing-fitted"]),
            "… each size from the rest of its log": output_of(bench)}
    studies = {study["name"]: study for study in result["studies"]}
    pages = {PRIORS: priors(set(studies) | {row["log"] for rows in logs.values() for row in rows})}
    blind = (set(studies) | {row["log"] for rows in logs.values() for row in rows}) - set(json.loads(pages[PRIORS])["seen"])
    write = {"curve": lambda name, _: curve_of(name), "papers": lambda name, _: all_papers(result), "all": lambda name, _: all_kinds(result, logs), "studies": lambda name, _: all_studies(result),
             "cells": lambda name, patterns: cells_of(studies[name], patterns),
             "blind": lambda name, _: f"Predicted before they were read: {', '.join(sorted(blind)) or 'none'}.\n"}
    for page in [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "studies/**/README.md"), recursive=True))]:
        with open(page, encoding="utf-8") as file:
            pages[page] = BLOCK.sub(lambda block: block[1] + write[block[2]](
                os.path.basename(os.path.dirname(page)), [part.strip().split("=", 1) for part in block[3].split(";")[1:]]) +
                block[4], file.read())
    wrong = 0
    for page, after in pages.items():
        before = ""
        if os.path.exists(page):
            with open(page, encoding="utf-8") as file:
                before = file.read()
        wrong += after != before
        if options.check:
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), after.splitlines(True), page, "as measured"))
        elif after != before:
            with open(page, "w", encoding="utf-8") as file:
                file.write(after)
    if options.check and wrong:
        sys.exit("figures or constants differ from what is written down: run tools/validated.py")


if __name__ == "__main__":
    main()
