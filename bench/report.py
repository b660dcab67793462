#!/usr/bin/env python3
"""What a report of 2,000 runs costs: its size, and the time to write it beside that of reading the study alone.

  python3 bench/report.py [--program build/release/bin/ganymede] [--rounds 5]

Two studies: twelve policies with 167 seeds each, as simulated (2,004 runs in 12 candidates), and the same runs told apart as
2,004 candidates, which is more to show. How long the pages take to open is printed by tests/browser/run.sh.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/release/bin/ganymede"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        seeds = folder / "seeds.json"
        subprocess.run(
            [options.program, "-q", "sweep", str(ROOT / "studies/spot-deadline.json"), "--set",
             f"/seeds={json.dumps(list(range(1, 168)))}", "--format", "json", "-o", str(seeds)], check=True)
        apart = json.loads(seeds.read_text())
        for number, run in enumerate(apart["runs"]):
            run["run"]["allocation"] = f"{number + 1} x p3.8xlarge"
        candidates = folder / "candidates.json"
        candidates.write_text(json.dumps({**apart, "groups": [], "rankings": []}))
        print(f"{'study':<14}{'runs':>6}{'JSON MB':>9}{'page MB':>9}{'report s':>10}{'(slowest)':>11}{'export csv s':>14}{'ratio':>7}")
        for study in (seeds, candidates):
            page = folder / "page.html"
            report, csv = [], []
            for _ in range(options.rounds):
                report.append(seconds([options.program, "report", str(study), "-o", str(page)]))
                csv.append(seconds([options.program, "export", "csv", str(study), "-o", str(folder / "runs.csv")]))
            middle, other = statistics.median(report), statistics.median(csv)
            print(f"{study.stem:<14}{len(apart['runs']):>6}{study.stat().st_size / 1e6:>9.1f}{page.stat().st_size / 1e6:>9.2f}"
                  f"{middle:>10.3f}{max(report):>11.3f}{other:>14.3f}{middle / other:>7.2f}")


if __name__ == "__main__":
    main()
