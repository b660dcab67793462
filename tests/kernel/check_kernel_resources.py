#!/usr/bin/env python3
"""Tests registers, shared memory and spills of the GPU backend's kernels, as ptxas reports them, against GPUs' limits.

  check_kernel_resources.py OBJECT...

cmake/keep_resources.sh writes OBJECT.resources when the kernels are compiled. Every kernel runs with blocks of 256 threads
(kernel/ops/cuda/launch_shape.hpp). The limits are those of "Compute Capabilities" in NVIDIA's CUDA C++ Programming
Guide: the same in all of 7.5 to 12.0 for a block, but not for a multiprocessor.
"""
import re
import sys

THREADS = 256  # kThreads in launch_shape.hpp
REGISTERS_OF_BLOCK, STATIC_SHARED_BYTES, PARAMETER_BYTES = 65536, 48 << 10, 4096
REGISTER_UNIT = 8  # registers of a thread are handed out in units of this many
SPILLED_BYTES = 32  # of a thread, that still do no harm
# Threads and bytes of shared memory of a multiprocessor, by compute capability.
MULTIPROCESSORS = {60: (2048, 64), 61: (2048, 96), 70: (2048, 96), 75: (1024, 64), 80: (2048, 164), 86: (1536, 100),
                   87: (1536, 164), 89: (1536, 100), 90: (2048, 228), 100: (2048, 228), 103: (2048, 228),
                   110: (1536, 228), 120: (1536, 100), 121: (1536, 100)}
MIN_KERNELS, MIN_BLOCKS = 60, 2


def kernels_of(lines):
    """(architecture, name, {registers, shared, spilled, parameters}) of each kernel."""
    kernel = None
    for line in lines:
        if found := re.search(r"Compiling entry function '(\w+)' for 'sm_(\d+)a?'", line):
            assert kernel is None, f"nothing is said of {kernel}"
            kernel, values = (int(found[2]), found[1]), {}
        elif kernel and (found := re.search(r"(\d+) bytes spill stores", line)) and "spilled" not in values:
            values["spilled"] = int(found[1])
        elif kernel and (found := re.search(r"Used (\d+) registers", line)):
            shared, constant = re.search(r"(\d+) bytes smem", line), re.search(r"(\d+) bytes cmem\[0\]", line)
            values["registers"], values["shared"] = int(found[1]), int(shared[1]) if shared else 0
            values["parameters"] = int(constant[1]) - 352 if constant else 0  # the first 352 are the launch's own
            yield kernel + (values,)
            kernel = None


def complaints(architecture, values):
    registers = -(-values["registers"] // REGISTER_UNIT) * REGISTER_UNIT * THREADS
    if registers > REGISTERS_OF_BLOCK:
        yield f"a block needs {registers} registers, expected at most {REGISTERS_OF_BLOCK}"
    if values["shared"] > STATIC_SHARED_BYTES:
        yield f"{values['shared']} bytes of shared memory, expected at most {STATIC_SHARED_BYTES}"
    if values["spilled"] > SPILLED_BYTES:
        yield f"{values['spilled']} bytes are spilled, expected at most {SPILLED_BYTES}"
    if values["parameters"] > PARAMETER_BYTES:
        yield f"{values['parameters']} bytes of parameters, expected at most {PARAMETER_BYTES}"
    threads, shared_kib = MULTIPROCESSORS[architecture]
    blocks = min(threads // THREADS, REGISTERS_OF_BLOCK // registers, (shared_kib << 10) // max(values["shared"] + 1024, 1))
    if blocks < MIN_BLOCKS:
        yield f"{blocks} blocks fit a multiprocessor, expected at least {MIN_BLOCKS}"


def main():
    kernels = [kernel for path in sys.argv[1:] for kernel in kernels_of(open(path + ".resources"))]
    bad = [f"sm_{architecture} {name}: {what}" for architecture, name, values in kernels
           for what in complaints(architecture, values)]
    architectures = {architecture: {} for architecture, _, _ in kernels}
    for architecture, name, values in kernels:
        architectures[architecture][name] = values
    for architecture, named in sorted(architectures.items()):
        most = max(named.values(), key=lambda values: values["registers"])
        print(f"sm_{architecture}: {len(named)} kernels, at most {most['registers']} registers, "
              f"{max(values['shared'] for values in named.values())} bytes of shared memory, "
              f"{max(values['spilled'] for values in named.values())} bytes spilled")
        if len(named) < MIN_KERNELS:
            bad.append(f"sm_{architecture}: {len(named)} kernels, expected at least {MIN_KERNELS}")
    print("\n".join(bad))
    sys.exit(1 if bad or not kernels else 0)


if __name__ == "__main__":
    main()
