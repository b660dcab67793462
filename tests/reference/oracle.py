#!/usr/bin/env python3
"""A second implementation of the documented rules, against the program, on random cases.

    tests/reference/oracle.py PROGRAM [--cases 300] [--seed 1] [--jobs 1] [--only PROPERTY] [--open]

It shares no code with the program: `runs.py` and `clusters.py` follow docs/money.md, docs/cluster.md, docs/policies.md
and docs/quality.md; `relations.py` compares what the program says of cases that must agree. `rules.txt` names the check of each rule. What
differs is shrunk by hypothesis, and printed with its files.
"""
import argparse
import concurrent.futures
import math
import pathlib
import sys
import tempfile
import time

try:
    import hypothesis
    import hypothesis.errors
    from hypothesis import strategies as st
except ImportError:
    print("skipped: no hypothesis (Debian's python3-hypothesis)")
    sys.exit(77)

import properties
from case import Case, Difference
from rules import OPEN, SHARES

SHRINK_S = 8  # of the clock, for one kind of difference


def search(program: str, name: str, cases: int, seed: int, known: set[str]) -> tuple[str, int, float, list[str]]:
    """All kinds of differences that one property shows, each with a small case."""
    found: list[str] = []
    tried, start = 0, time.process_time()
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        while True:
            smallest: list[Difference] = []
            stop = math.inf

            @hypothesis.seed(seed)
            @hypothesis.settings(max_examples=cases, database=None, deadline=None, print_blob=False, report_multiple_bugs=False,
                                 suppress_health_check=list(hypothesis.HealthCheck), verbosity=hypothesis.Verbosity.quiet,
                                 phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink])
            @hypothesis.given(st.data())
            def one(data: st.DataObject) -> None:
                nonlocal tried, stop
                if time.monotonic() > stop:
                    return
                tried += 1
                try:
                    getattr(properties, name)(Case(data.draw, program, pathlib.Path(folder), known))
                except Difference as difference:
                    if not smallest:
                        stop = time.monotonic() + SHRINK_S
                    elif difference.what != smallest[0].what:
                        return
                    smallest.append(difference)
                    raise
            try:
                one()
            except (Difference, hypothesis.errors.Flaky):
                pass
            if not smallest:
                return name, tried, time.process_time() - start, found
            known.add(smallest[0].what)
            found.append(f"{name}: {min(map(str, smallest), key=len)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=sorted(SHARES))
    parser.add_argument("--open", action="store_true", help="also what OPEN in rules.py lists")
    asked = parser.parse_args()
    shares = {asked.only: 1.0} if asked.only else SHARES
    program = str(pathlib.Path(asked.program).resolve())
    work = [(program, name, max(1, round(asked.cases * share / sum(shares.values()) / asked.jobs)), asked.seed + 1000 * part,
             set() if asked.open else set(OPEN))
            for part in range(asked.jobs) for name, share in shares.items()]
    wrong: dict[str, str] = {}
    with concurrent.futures.ProcessPoolExecutor(asked.jobs) as pool:
        for name, tried, seconds, found in pool.map(search, *zip(*work)):
            print(f"{name}: {tried} cases, {len(found)} kinds of differences, {seconds:.1f} s of Python", flush=True)
            wrong.update({text.split("\n")[0].split(" is ")[0]: text for text in found})
    print(*wrong.values(), sep="\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
