#!/usr/bin/env python3
"""How far `nccl` is off on public nccl-tests logs.

  bench/nccl_logs.py [--program build/release/bin/ganymede] [--log NAME] [--format table|json]

Of every log in bench/nccl_logs/curves.csv, `ganymede import nccl-tests` fits one latency and one bandwidth to the smallest
and the largest size; printed is exp(mean |ln(predicted / measured)|) - 1 over all other sizes, in three ranges, beside a
straight line through the same two points. --log prints all sizes of one.

The logs of the first group were looked at while the model was made; none of its constants is fitted to them. Those of
the second named a mechanism or gave a constant, as the code says where it uses them. The third were first predicted when
the model stood.
"""

import argparse
import csv
import json
import os
import subprocess
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nccl_logs")
MACHINES = os.path.join(HERE, "machines.json")

# name: group, ranks, catalog, instance, nodes, scheme, source
LOGS = {
    "v100_4_pcie_242": ("seen", 4, MACHINES, "4xV100 PCIe", 1, "nccl:2.4.2", "rcgsheffield/sheffield_hpc bessemer/software/libs/cuda.rst @f60c6e605e2b"),
    "gtx1080_2_pcie": ("seen", 2, MACHINES, "2xGTX 1080", 1, "nccl:2.5.7", "README of a macOS port of NCCL by llv22"),
    "rtx2080ti_2_pcie": ("seen", 2, MACHINES, "2xRTX 2080 Ti", 1, "nccl", "Anthony-Hoo/Anthony-Hoo.github.io posts/AutoDL_Multi-GPU_Interconnection_Test.md @37e805e8e56f"),
    "v100_8_mesh": ("seen", 8, "aws", "p3.16xlarge", 1, "nccl:2.4.8", "a blog of 2019-09-26 on a server like a DGX-1; NCCL not stated, 2.4.8 was current"),
    "a100_8": ("seen", 8, "aws", "p4d.24xlarge", 1, "nccl", "stas00/ml-engineering network/README.md @744d01e18b79"),
    "p4d_16_efa": ("used", 16, "aws", "p4d.24xlarge", 2, "nccl:2.9.9/ring", "aws-samples/aws-efa-eks README.md @9d6557e1689b, NCCL_ALGO=RING"),
    "eks_2_tcp": ("seen", 2, MACHINES, "tcp", 2, "nccl", "aws-samples/aws-do-eks karpenter README @509da3f1df70, EFA off"),
    "eks_2_efa": ("used", 2, MACHINES, "efa", 2, "nccl:any", "the same, EFA on; its plateau at LL's rate says that the plugin let LL pass"),
    "a100_8_mpi": ("used", 8, "aws", "p4d.24xlarge", 1, "nccl", "a note on nccl-tests, host \"thanos\", 8 x A100-SXM4-80GB, one process a GPU"),
    "g4dn_2_efa": ("used", 2, MACHINES, "g4dn.8xlarge", 2, "nccl:2.12.7", "terraform-aws-eks-blueprints, example with EFA; NCCL_PROTO=simple set by the plugin"),
    "h100_a3mega_16": ("new", 16, MACHINES, "a3-megagpu-8g", 2, "nccl", "lessizzmore/create-a3mega-ztan-fork ztan-NCCL-test-result @02dd8f455c43"),
    "p3dn_16_efa": ("used", 16, "aws", "p3dn.24xlarge", 2, "nccl:2.4.8/ring", "AWS, EC2 User Guide, EFA and NCCL, 2 x p3dn.24xlarge, NCCL_TREE_THRESHOLD=0"),
    "v100_4_pcie": ("new", 4, MACHINES, "4xV100 PCIe", 1, "nccl:2.26.2", "a note on nccl-tests, host \"gdr116\", 4 x V100-SXM2 without NVLink in use"),
    "gh200_8_slingshot": ("new", 8, MACHINES, "4xGH200", 2, "nccl", "user documentation of CSCS, 2 nodes of 4 GH200 over Slingshot 11"),
}


def write_log(name, ranks, path):
    """The rows in the columns of nccl-tests; algbw and busbw follow from size and time."""
    with open(os.path.join(HERE, "curves.csv")) as file, open(path, "w") as log:
        log.write("# Collective test starting: all_reduce_perf\n")
        for row in csv.DictReader(file):
            if row["log"] != name:
                continue
            size, text = int(row["bytes"]), ""
            for time in filter(None, (row["out_of_place_us"], row["in_place_us"])):
                algbw = size / float(time) / 1e3
                text += f" {time} {algbw:.4f} {algbw * 2 * (ranks - 1) / ranks:.4f} 0"
            log.write(f"{size} {size // 4} float sum -1{text}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--log", choices=sorted(LOGS))
    parser.add_argument("--format", choices=("table", "json"), default="table")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (group, ranks, catalog, instance, nodes, scheme, source) in LOGS.items():
            if options.log not in (None, name):
                continue
            log = os.path.join(folder, name + ".log")
            write_log(name, ranks, log)
            done = subprocess.run(
                [options.program, "import", "nccl-tests", log, "--catalog", catalog, "--instance", instance, "--nodes",
                 str(nodes), "--scheme", scheme], capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            if options.log:
                print(done.stderr)
            fit = json.loads(done.stdout)["fit"]
            rows.append({"log": name, "group": group, "scheme": scheme, "source": source, "errors": fit["errors"],
                         "notes": fit["notes"]})
    if options.format == "json":
        print(json.dumps(rows, indent=2))
        return
    print(f"{'':20} {'':5}   {'below 64 KiB':>15}   {'64 KiB - 1 MiB':>15}   {'from 1 MiB':>15}")
    print(f"{'log':20} {'':5}  " + "  ".join(f"{'model':>7} {'line':>8}" for _ in range(3)))
    for row in rows:
        text = "  ".join(f"{100 * e['error']:6.1f}% {100 * e['line']:7.1f}%" if e["sizes"] else f"{'-':>7} {'-':>8}"
                         for e in row["errors"])
        print(f"{row['log']:20} {row['group']:5}  {text}")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader, head perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
