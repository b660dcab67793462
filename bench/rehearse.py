#!/usr/bin/env python3
"""How far predictions are off from all-reduces that are executed for real between processes of this machine.

    bench/rehearse.py [--network namespaces|paced] [--ranks 2,4,8] [--rates 100,1000] [--latencies 0.1,1,5]
                      [--schemes ring,tree] [--sizes 64KiB,1MiB] [--program build/release/bin/ganymede]

For each rate (Mbit/s), latency (ms) and number of ranks it runs `ganymede allreduce --real --hosts` and prints the mean
and the worst error of the prediction, by scheme and by size. The network of each prediction is what one ping between
two ranks found; nothing else is fitted.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile


def platform(rate_mbit: float, latency_ms: float) -> dict:
    """Nodes of one processor each on a switch; the latency of a message is that of two NICs."""
    return {
        "schema": "ganymede.platform/1", "provider": "private", "name": "rehearsed",
        "gpus": {"processor": {"memory": "4GiB", "fp32": "50Gflop/s", "memory_bandwidth": "10GB/s"}},
        "instances": {"host": {"gpu": "processor", "gpus": 1,
                               "nic": {"bandwidth": f"{rate_mbit}Mbit/s", "latency": f"{latency_ms / 2}ms"}}},
        "fabric": {"kind": "switch", "latency": "0us", "oversubscription": 1},
    }


def measure(arguments: argparse.Namespace, rate: float, latency: float, ranks: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "platform.json"
        file.write_text(json.dumps(platform(rate, latency)))
        command = [arguments.program, "allreduce", "--real", "--catalog", str(file), "--instance", "host",
                   "--nodes", str(ranks), "--hosts", str(ranks), "--network", arguments.network, "--scale", "1",
                   "--scheme", arguments.schemes, "--bytes", arguments.sizes, "--format", "json"]
        rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    for row in rows:
        row.update(rate=rate, latency=latency, error=row["predicted_from_ping_s"] / row["time_s"] - 1)
        print(f"{rate:g} Mbit/s, {latency:g} ms, {ranks} ranks, {row['scheme']}, {row['bytes']} bytes: measured "
              f"{row['time_s'] * 1e3:.2f} ms, predicted {row['predicted_from_ping_s'] * 1e3:.2f} ms "
              f"({100 * row['error']:+.1f} %)", flush=True)
    return rows


def table(rows: list[dict], columns: str) -> None:
    """Mean and worst absolute error for each scheme and each value of a column."""
    values = sorted({row[columns] for row in rows})
    schemes = list(dict.fromkeys(row["scheme"] for row in rows))
    print(f"\n| scheme | {' | '.join(f'{columns} {value:g}' for value in values)} |")
    print("|---" * (len(values) + 1) + "|")
    for scheme in schemes + ["all"]:
        cells = []
        for value in values:
            errors = [abs(row["error"]) for row in rows if row[columns] == value and scheme in (row["scheme"], "all")]
            cells.append(f"{100 * sum(errors) / len(errors):.1f} % ({100 * max(errors):.1f})")
        print(f"| {scheme} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--network", default="paced", choices=["namespaces", "paced"])
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--rates", default="100,1000")
    parser.add_argument("--latencies", default="0.1,1,5")
    parser.add_argument("--schemes", default="ring,halving-doubling,recursive-doubling,tree,reduce-to-one")
    parser.add_argument("--sizes", default="64KiB,1MiB,4MiB")
    arguments = parser.parse_args()
    rows = []
    for rate in map(float, arguments.rates.split(",")):
        for latency in map(float, arguments.latencies.split(",")):
            for ranks in map(int, arguments.ranks.split(",")):
                rows += measure(arguments, rate, latency, ranks)
    print("\nMean error (worst in parentheses) of the prediction from a ping:")
    for columns in ("bytes", "ranks", "latency", "rate"):
        table(rows, columns)


if __name__ == "__main__":
    main()
