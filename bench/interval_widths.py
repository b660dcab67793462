#!/usr/bin/env python3
"""Fits the widths of `validate`'s intervals (calibration/interval_classes.cpp) to the published studies.

    ganymede validate --format json > validation.json && python3 bench/interval_widths.py validation.json

The half-width of a step's interval, as a logarithm, is the root of the sum of squares of: what a published figure
repeats within, a factor on the share of workers that differ, what the error of a collective alone makes of the share of
collectives, and a floor. The program prints the narrowest widths that hold 90 % of the cells whose batch was measured,
by class, and how many cells of a study the widths hold that are fitted to all other studies. A study that is the only
one of its class is held by nothing but its own widths, and is not counted. For curves of collectives it prints the 90 %
quantile of the error.
"""
import json
import math
import sys

FACTORS = [0.1 * i for i in range(0, 31)]
FLOORS = [0.005 * i for i in range(0, 41)] + [0.05 * i for i in range(5, 21)]


def rows_of(result):
    rows = []
    for study in result["studies"]:
        if not study["in_totals"]:
            continue
        for cell in study["cells"]:
            if "parts" not in cell or "alternative" in cell or "other batch" in cell["evidence"]:
                continue
            parts = cell["parts"]
            step = parts["step_s"]
            several = "several machines" in cell["evidence"]
            kind = f"{'several machines' if several else 'one machine'}, {cell['executor']}"
            if several and cell["executor"] == "graph":  # MXNet's outliers are all over a network that is assumed
                kind = f"{cell['evidence'].split(',')[0]}, {kind}"
            rows.append({"study": study["name"], "class": kind,
                         "error": abs(math.log(step / parts["measured_s"])),
                         "fixed": 1.6449 * math.sqrt(2) * cell["repeat"],
                         "pauses": 0.5 * parts["pause_s"] / (step + parts["pause_s"]),
                         "collectives": parts["links_half_width"],
                         "workers": (step - parts["alone_s"] - parts["collectives_s"]) / step})
    return rows


def width(row, workers, floor):
    return math.sqrt(row["fixed"] ** 2 + row["pauses"] ** 2 + (workers * row["workers"]) ** 2
                     + row["collectives"] ** 2 + floor ** 2)


def held(rows, *widths):
    return sum(row["error"] <= width(row, *widths) for row in rows) / len(rows)


def narrowest(rows, share=0.9):
    found = [(sum(width(row, workers, floor) for row in rows) / len(rows), workers, floor)
             for workers in FACTORS for floor in FLOORS if held(rows, workers, floor) >= share]
    return min(found) if found else (math.nan, FACTORS[-1], FLOORS[-1])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        result = json.load(file)
    rows = rows_of(result)
    for kind in sorted({row["class"] for row in rows}):
        mine = [row for row in rows if row["class"] == kind]
        mean, workers, floor = narrowest(mine)
        print(f"{kind}: {len(mine)} cells, factor on workers {workers:.1f}, "
              f"floor {floor:.3f}, mean half-width {100 * mean:.1f} %")
        kept = counted = 0
        for study in sorted({row["study"] for row in mine}):
            others = [row for row in mine if row["study"] != study]
            own = [row for row in mine if row["study"] == study]
            if not others:
                continue
            _, workers, floor = narrowest(others)
            kept += held(own, workers, floor) * len(own)
            counted += len(own)
            print(f"    without {study}: factor {workers:.1f}, floor {floor:.3f}; holds "
                  f"{100 * held(own, workers, floor):.0f} % of its {len(own)} cells")
        if counted:
            print(f"    held by widths that have not seen the study: {100 * kept / counted:.0f} % of {counted}")
    for several in ("one machine", "several machines"):
        errors = sorted(abs(math.log(cell["predicted"] / cell["measured"])) for study in result["studies"]
                        for cell in study["cells"] if cell.get("evidence", "").startswith("collective")
                        and several in cell["evidence"])
        if errors:
            print(f"collectives, {several}: 90 % of {len(errors)} within a factor of "
                  f"{math.exp(errors[min(len(errors) - 1, int(0.9 * len(errors)))]):.2f}")


if __name__ == "__main__":
    main()
