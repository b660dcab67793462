#!/usr/bin/env python3
"""All-reduces simulated by SimGrid's SMPI beside `ganymede allreduce`: predicted times, processor time and memory.

  python3 bench/smpi.py [--program build/release/bin/ganymede] [--ranks 64,256] [--bytes 1048576]

One rank a node on a switch, where both can say the same: SMPI's "lr", "rab" and "rdb" are `ring`, `halving-doubling` and
`recursive-doubling`. SMPI runs an MPI program whose ranks are threads of one process, and none of its corrections of latencies and
bandwidths. Additions are free on both sides. It needs smpicc and smpirun (libsimgrid-dev).
"""
import argparse
import json
import os
import resource
import subprocess
import tempfile

import scale

SCHEMES = {"ring": "lr", "halving-doubling": "rab", "recursive-doubling": "rdb"}
PLATFORM = """<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">
<cluster id="c" prefix="n" suffix="" radical="0-%d" speed="1Gf" bw="12.5GBps" lat="2.5us" sharing_policy="SPLITDUPLEX"/></platform>"""
PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, count = atoi(argv[1]) / 4;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  float *from = SMPI_SHARED_MALLOC(4L * count), *to = SMPI_SHARED_MALLOC(4L * count);
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime(), mine, longest;
  MPI_Allreduce(from, to, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  mine = MPI_Wtime() - begin;
  MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%.9g\n", longest);
  MPI_Finalize();
}
"""
OPTIONS = ["surf/precision:1e-12", "network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0", "network/weight-S:0", "network/latency-factor:1",
           "network/bandwidth-factor:1", "smpi/simulate-computation:no", "smpi/async-small-thresh:0",
           "smpi/send-is-detached-thresh:0", "smpi/privatization:no"]


def used(command, folder):
    """Standard output, processor seconds and MB of a command."""
    with open(os.path.join(folder, "out"), "w+") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, cwd=folder)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return (out.read() if child.returncode == 0 else None), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def smpi(folder, ranks, algorithm, size):
    with open(os.path.join(folder, "cluster.xml"), "w") as out:
        out.write(PLATFORM % (ranks - 1))
    with open(os.path.join(folder, "hosts"), "w") as out:
        out.writelines("n%d\n" % rank for rank in range(ranks))
    text, seconds, memory = used(["smpirun", "-platform", "cluster.xml", "-hostfile", "hosts", "-np", str(ranks),
                                  *["--cfg=" + option for option in OPTIONS], "--cfg=smpi/allreduce:" + algorithm, "./allreduce",
                                  str(size)], folder)
    return text and float(text.split()[-1]), seconds, memory


def ganymede(program, folder, ranks, scheme, size, fidelity):
    text, seconds, memory = used([program, "allreduce", "--catalog", "lab.json", "--instance", "node-1", "--nodes", str(ranks),
                                  "--scheme", scheme, "--bytes", str(size), "--fidelity", fidelity, "--jobs", "1", "--format",
                                  "json"], folder)
    return text and json.loads(text)[0]["time_s"], seconds, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(scale.ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--ranks", default="64,256")
    parser.add_argument("--bytes", type=int, default=1 << 20)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (scale.MEMORY, scale.MEMORY))
    lab = scale.platform("switch")
    lab["gpus"]["GPU"]["memory_bandwidth"] = "100000000GB/s"
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "lab.json"), "w") as out:
            json.dump(lab, out)
        with open(os.path.join(folder, "allreduce.c"), "w") as out:
            out.write(PROGRAM)
        subprocess.run(["smpicc", "-O2", "allreduce.c", "-o", "allreduce"], cwd=folder, check=True)
        for ranks in map(int, options.ranks.split(",")):
            for scheme, algorithm in SCHEMES.items():
                runs = [smpi(folder, ranks, algorithm, options.bytes),
                        *(ganymede(os.path.abspath(options.program), folder, ranks, scheme, options.bytes, fidelity)
                          for fidelity in ("message", "folded"))]
                print("%-18s %5d ranks " % (scheme, ranks) + "; ".join(
                    "%s %s, %.2f s of processor time, %.0f MB" % (name, "%.6g s" % time if time else "failed", seconds, memory)
                    for name, (time, seconds, memory) in zip(("SMPI", "message", "folded"), runs)), flush=True)


if __name__ == "__main__":
    main()
