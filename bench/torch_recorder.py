#!/usr/bin/env python3
"""What recording costs: steps of DCGAN with the recorder and without, in turn, and the ratio of their times.

Steps run in pairs, the first of them in turn with the recorder's hooks and without. The two counted steps and the start
and end of the recording are no part of either. Prints the median ratio with its 95 % interval (bootstrap over
the pairs). --shares prints the shares of the parts of a step beside those of this project's own kernel.

  PYTHONPATH=python python3 bench/torch_recorder.py [--pairs 60] [--batch 16] [--width 64] [--shares]
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]

from torch_support import PROGRAM, Gan, torch  # noqa: E402

from ganymede.torch import record  # noqa: E402
from ganymede.torch._record import FOLLOWED_STEPS  # noqa: E402

# The parts that PyTorch's step and the kernel's have in common, in the order of the kernel's.
PARTS = {"discriminator.forward_real": "discriminator.forward", "discriminator.backward_real": "discriminator.backward",
         "generator.forward": "generator.forward", "discriminator.forward_fake": "discriminator.forward.2",
         "discriminator.backward_fake": "discriminator.backward.2", "discriminator.update": "discriminator.update",
         "generator.forward_through_discriminator": "generator.forward_through_discriminator",
         "generator.backward_through_discriminator": "generator.backward_through_discriminator",
         "generator.backward": "generator.backward", "generator.update": "generator.update"}


def seconds_of(call):
    """Seconds of processor time of a step on a CPU, which other programs disturb less, or by the clock on a GPU."""
    gpu = torch.cuda.is_available()
    clock = time.perf_counter if gpu else time.process_time
    begin = clock()
    call()
    if gpu:
        torch.cuda.synchronize()
    return clock() - begin


def overhead(options):
    gan = Gan(options.batch, options.width)
    ratios, more_s = [], []
    with record(models=gan.models, batch=options.batch, output=None, steps=10**9) as r:
        def recorded():
            gan.step()
            r.step()

        for _ in range(FOLLOWED_STEPS):
            recorded()
        kept = {one for buckets in r._marks.buckets.values() for one in buckets.last}
        for pair in range(options.pairs):
            seconds = {}
            for with_hooks in ((True, False) if pair % 2 == 0 else (False, True)):
                if with_hooks:
                    r._marks.start()  # what passed without hooks is no part of a recorded step
                    seconds[True] = seconds_of(recorded)
                    continue
                r._hooks.remove()
                seconds[False] = seconds_of(gan.step)
                r._hooks.install()
                r._hooks.keep_gradients(kept)
            ratios.append(seconds[True] / seconds[False])
            more_s.append(seconds[True] - seconds[False])
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    print(f"DCGAN-64, width {options.width}, batch {options.batch}, {options.pairs} pairs of steps, PyTorch "
          f"{torch.__version__}: with the recorder a step takes {statistics.median(ratios):.4f} "
          f"[{medians[49]:.4f}-{medians[1949]:.4f}] times as long, {1e6 * statistics.median(more_s):.0f} us more")


def means(trace):
    return {phase["name"]: statistics.median(phase["seconds"]) for phase in trace["batches"][0]["phases"]}


def shares(options):
    gan = Gan(options.batch)
    with record(models=gan.models, batch=options.batch, output=None) as r:
        for _ in range(2 + options.pairs):
            gan.step()
            r.step()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "trace.json")
        subprocess.run([PROGRAM, "train", "--model", "dcgan-64", "--batch", str(options.batch), "--steps",
                        str(options.pairs + 2), "--trace", file, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        kernel = means(json.loads(Path(file).read_text(encoding="utf-8")))
    pytorch = means(r.trace)
    of_kernel, of_pytorch = (sum(one[name] for name in names) for one, names in
                             ((kernel, PARTS), (pytorch, PARTS.values())))
    print(f"{'part':44} {'PyTorch':>8} {'kernel':>8}")
    for ours, theirs in PARTS.items():
        print(f"{ours:44} {pytorch[theirs] / of_pytorch:8.1%} {kernel[ours] / of_kernel:8.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--shares", action="store_true")
    options = parser.parse_args()
    if options.shares:
        shares(options)
    else:
        overhead(options)


if __name__ == "__main__":
    main()
