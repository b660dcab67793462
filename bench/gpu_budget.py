#!/usr/bin/env python3
"""What a step of our own training must take on a GPU at least, by model and precision.

  bench/gpu_budget.py [--program build/release/bin/ganymede] [--gpu H200] [--batch 128] [--bandwidth 4.3e12] [--peak 990e12]

Launches, bytes and FLOPs are those of the list of kernels (`ganymede kernels`); in bf16 activations take two bytes. The
first measurement on such a GPU is held to these times: bytes at the bandwidth that copies reach, and FLOPs at the peak of
the tensor cores (in fp32 a fifteenth of it, as on Hopper).
"""
import argparse
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def kernels_of(program, gpu, model, batch, precision):
    command = [program, "kernels", "--gpu", gpu, "--model", model, "--batch", str(batch), "--precision", precision]
    return json.loads(subprocess.run(command + ["--format", "json"], check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--gpu", default="H200")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--bandwidth", type=float, default=4.3e12, help="bytes/s")
    parser.add_argument("--peak", type=float, default=990e12, help="FLOP/s of 16-bit products")
    options = parser.parse_args()
    listed = subprocess.run([options.program, "list", "models", "--format", "json"], check=True, capture_output=True)
    print("| model | precision | launches | GB | GFLOP | bytes' time | FLOPs' time | kernel model |")
    print("|---|---|---|---|---|---|---|---|")
    for model in (entry["name"] for entry in json.loads(listed.stdout)):
        for precision, share in (("fp32", 1 / 15), ("tf32", 1 / 2), ("bf16", 1)):
            step = kernels_of(options.program, options.gpu, model, options.batch, precision)
            moved = sum(kernel["launches"] * kernel["bytes"] for kernel in step["kernels"])
            flops = sum(kernel["launches"] * kernel["flops"] for kernel in step["kernels"]
                        if "convolution" in kernel["kind"] or "product" in kernel["kind"])
            low, high = step["step"]["interval_s"]
            print(f"| {model} | {precision} | {step['step']['launches']:.0f} | {moved / 1e9:.2f} | {flops / 1e9:.1f} | "
                  f"{1e3 * moved / options.bandwidth:.2f} ms | {1e3 * flops / (share * options.peak):.2f} ms | "
                  f"{1e3 * step['step']['seconds']:.2f} ms ({1e3 * low:.2f} to {1e3 * high:.2f}) |")


if __name__ == "__main__":
    main()
