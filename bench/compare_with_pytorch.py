#!/usr/bin/env python3
"""How many times as fast as PyTorch is our GAN step on this CPU, or on this GPU?

Runs the two programs in turn, several rounds, with the same threads and passive OpenMP waiting, and prints the ratio
of their median steps in each round (PyTorch / ours), its median and its spread. Only ratios within one run count.

  python3 bench/compare_with_pytorch.py --torch-bench torch_gan_bench.py --threads 1,2 --model mlp:64,dcgan32:64,dcgan64:16
  python3 bench/compare_with_pytorch.py --torch-bench torch_gan_bench.py --device cuda --model mlp:64,dcgan64:128

On a GPU PyTorch is taken eager, compiled and as a CUDA graph, each at the precision compared, and the ratio is to the
fastest of them.

The PyTorch script is not part of this project: any program that takes --model mlp, dcgan32 or dcgan64, --batch N,
--threads N, --freeze-d and --min-time S and prints one JSON line with "median_step_ms" will do. PyTorch is only as fast as its BLAS: with the
reference BLAS it is ten times slower than with OpenBLAS, so the library that was loaded is printed and the reference
one is refused; --library-path points at another (for example the folder of OpenBLAS's libblas.so.3).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

FIND_BLAS = (
    "import torch; a = torch.rand(64, 64); a @ a; "
    "print('\\n'.join(sorted({l.split()[-1] for l in open('/proc/self/maps') if '/' in l})))"
)


OURS = {"mlp": "mlp-gan", "dcgan32": "dcgan-32", "dcgan64": "dcgan-64"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-bench", required=True, help="the PyTorch program")
    parser.add_argument("--torch-python", default="/usr/bin/python3", help="the Python that has torch")
    parser.add_argument("--kernel-step", default="build/release/bin/kernel_step", help="our program")
    parser.add_argument("--library-path", default="", help="put before LD_LIBRARY_PATH for PyTorch")
    parser.add_argument("--threads", default="1", help="comma-separated")
    parser.add_argument("--model", default="mlp:64", help="MODEL:BATCH, comma-separated")
    parser.add_argument("--rounds", type=int, default=5, help="on a CPU; on a GPU ours is run once beside each form")
    parser.add_argument("--min-time", type=float, default=3.0, help="seconds for each program and round")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", default="tf32,bf16", help="on a GPU: fp32, tf32, bf16, comma-separated")
    parser.add_argument("--allow-reference-blas", action="store_true")
    return parser.parse_args()


def environment(library_path):
    env = dict(os.environ, OMP_WAIT_POLICY="PASSIVE")
    if library_path:
        env["LD_LIBRARY_PATH"] = ":".join(p for p in (library_path, env.get("LD_LIBRARY_PATH", "")) if p)
    return env


def loaded_blas(python, env):
    """Paths of the BLAS libraries in a PyTorch process."""
    out = subprocess.run([python, "-c", FIND_BLAS], env=env, capture_output=True, text=True, check=True).stdout
    names = ("blas", "mkl", "blis", "atlas")
    return [line for line in out.split("\n") if any(n in os.path.basename(line).lower() for n in names)]


def is_reference(libraries):
    fast = ("openblas", "mkl_", "libmkl", "blis", "atlas")
    return not any(word in library for library in libraries for word in fast)


def median_ms(command, env):
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{command[0]}: exit {run.returncode}: {run.stderr.strip()[-500:]}")
    return json.loads(run.stdout.strip().split("\n")[-1])["median_step_ms"]


def compare(args, env, threads, model, batch):
    common = ["--batch", str(batch), "--threads", str(threads), "--min-time", str(args.min_time)]
    torch = [args.torch_python, args.torch_bench, "--model", model, "--freeze-d", *common]
    ours = [args.kernel_step, "--model", OURS[model], *common]
    rounds = [(median_ms(torch, env), median_ms(ours, env)) for _ in range(args.rounds)]
    ratios = sorted(t / o for t, o in rounds)
    print(f"{model}, batch {batch}, {threads} thread(s): PyTorch {statistics.median(t for t, _ in rounds):.2f} ms, "
          f"ours {statistics.median(o for _, o in rounds):.2f} ms, "
          f"ratio {statistics.median(ratios):.2f} [{ratios[0]:.2f}-{ratios[-1]:.2f}] over {args.rounds} rounds", flush=True)


PRECISION = {"fp32": [], "tf32": ["--tf32"], "bf16": ["--tf32", "--amp", "bf16"]}
FORMS = {"eager": [], "compiled": ["--compile", "default"], "compiled, its graphs": ["--compile", "reduce-overhead"],
         "graph": ["--cuda-graph"], "graph, compiled": ["--cuda-graph", "--compile", "default"]}


def compare_on_gpu(args, env, precision, model, batch):
    common = ["--batch", str(batch), "--min-time", str(args.min_time)]
    torch = [args.torch_python, args.torch_bench, "--device", "cuda", "--model", model, "--freeze-d", "--channels-last",
             "--adam", "fused", *PRECISION[precision], *common]
    ours = [args.kernel_step, "--model", OURS[model], "--backend", "cuda", "--precision", precision, *common]
    times, mine = {}, []
    for form, flags in FORMS.items():
        mine.append(median_ms(ours, env))  # in turn with each form, so that a drift of the GPU's clock shows
        try:
            times[form] = median_ms(torch + flags, env)
        except SystemExit as error:  # a form that this PyTorch cannot do
            print(f"  {form}: {error}", flush=True)
    best = min(times, key=times.get)
    print(f"{model}, batch {batch}, {precision}: ours {statistics.median(mine):.3f} ms [{min(mine):.3f}-{max(mine):.3f}]; "
          + ", ".join(f"{form} {ms:.3f} ms ({ms / statistics.median(mine):.2f}x)" for form, ms in times.items())
          + f"; best of PyTorch: {best}, ratio {times[best] / statistics.median(mine):.2f}", flush=True)


def main():
    args = arguments()
    if not Path(args.kernel_step).exists():
        sys.exit(f"{args.kernel_step}: not there; build it (target kernel_step) or give --kernel-step")
    env = environment(args.library_path)
    if args.device == "cuda":
        for model, batch in (item.split(":") for item in args.model.split(",")):
            for precision in args.precision.split(","):
                compare_on_gpu(args, env, precision, model, int(batch))
        return
    libraries = loaded_blas(args.torch_python, env)
    print("PyTorch's BLAS:", ", ".join(libraries) or "inside its own library", flush=True)
    if libraries and is_reference(libraries) and not args.allow_reference_blas:
        sys.exit("this is the reference BLAS, against which any kernel looks fast; install libopenblas0-pthread, "
                 "give --library-path, or insist with --allow-reference-blas")
    for model, batch in (item.split(":") for item in args.model.split(",")):
        for threads in args.threads.split(","):
            compare(args, env, int(threads), model, int(batch))


if __name__ == "__main__":
    main()
