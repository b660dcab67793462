#!/usr/bin/env python3
"""Steps of published networks from their layers alone, as lists and as recipes, and what a training takes beside its kernels.

  bench/networks.py [--program build/release/bin/ganymede] [--layers FOLDER] [--fit]

No step is used for its own prediction, but what is beside a kernel (calibration/kernel_steps.hpp) is estimated from these steps:
--fit estimates it again without each publication in turn and says how far that one is off. --layers keeps the lists that are
made here. The last table carries published steps from one GPU to another, as a step that a user has measured is carried.

Published figures: StyleGAN2-ADA (NVlabs/stylegan2-ada-pytorch README @d72cc7d041b4: 1,000 images on one V100, mixed
precision), CycleGAN (stanford-futuredata/gavel @c4fa40097339, both of its tables where they have it), ResNet-50
(tensorflow/docs benchmarks.md @62da04c02d67, 2017; NVIDIA DeepLearningExamples ConvNets/resnet50v1.5 @291f0d02e815; OneFlow
DLPerf @c89430bac64f; Gavel), and those that the recipes stylegan2, stylegan3-t, hifi-gan, nvae and pix2pixhd state as measured,
with their sources.
The layers of StyleGAN2-ADA follow its paper and published code: layer for layer the convolutions, styles, filters, noise and
activations, in fp16 at the four highest resolutions.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import tempfile

import step_fits

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def elementwise(reads=1, writes=1, backward=None, broadcast=False):
    layer = {"kind": "elementwise", "reads": reads, "writes": writes, **({"broadcast": True} if broadcast else {})}
    return {**layer, "backward": list(backward)} if backward else layer


# A filter of 4 x 4 in a kernel of its own: each result takes 32 loads from shared memory (torch_utils/ops/upfirdn2d.cu, whose
# tiles are volatile), and one for its tile.
FILTER = {"kind": "elementwise", "backward": [1, 1], "shared": [33, 33]}
# Bias and activation in one kernel; the bias's gradient is a sum of its own.
BIASED = elementwise(1, 1, (3, 1))
# Products with a number of each channel: the gradient of the input, and the sum that is the gradient of the channel's.
SCALE = elementwise(1, 1, (4, 2), broadcast=True)


def side(shape, layers):
    return {"kind": "side", "input": shape, "layers": layers}


def in_precision(precision, layers):
    return [{**layer, "precision": precision} for layer in layers]


# The scaled filters of each image: products with its style; backward, the same with both, and two sums.
SCALED = elementwise(0, 1, (4, 2), broadcast=True)
# Backward of a square in PyTorch 1.7: a power, its product with two, and that with the gradient of the sum.
SQUARE = elementwise(1, 1, (3, 3))
SUM = elementwise(1, 0, (0, 0))


def styled(channels, out, kernel, demodulate):
    """The affine layer of a style and, with demodulation, the scaled filters of each image and their norms: StyleGAN2's, which
    scales the activations before and after the convolution (fused_modconv=False in training)."""
    layers = [side([512, 1, 1], [{"kind": "linear", "out": channels}])]
    if demodulate:
        layers.append(side([out, channels, kernel * kernel], [SCALED, SQUARE, SUM]))
    return in_precision("fp32", layers)


def stylegan2_ada(size, base):
    """Generator with skips and discriminator with residuals, mapping of two layers, augmentation before the discriminator."""
    depth = int(math.log2(size))
    channels = {2 ** i: min(base // 2 ** i, 512) for i in range(2, depth + 1)}
    half = lambda resolution: "fp16" if resolution >= size // 8 and resolution > 4 else "fp32"

    def synthesis(resolution, out, up):
        before = channels[resolution // 2 if up else resolution]
        layers = [SCALE]
        if up:
            layers += [{"kind": "transposed-convolution", "out": out, "kernel": 3, "stride": 2, "padding": 1,
                        "output_padding": 1, "bias": False}, FILTER]
        else:
            layers += [{"kind": "convolution", "out": out, "kernel": 3, "bias": False}]
        noise = side([1, resolution, resolution], [elementwise(0, 1), elementwise()])
        return styled(before, out, 3, True) + in_precision(half(resolution), layers + [noise, elementwise(1, 1, (5, 2), broadcast=True), elementwise(1, 1, (3, 1))])

    def to_rgb(resolution):
        layers = [SCALE, {"kind": "convolution", "out": 3, "kernel": 1, "bias": False}, elementwise(1, 1, (3, 1))]
        skip = in_precision("fp32", [{"kind": "upsample", "factor": 2}, elementwise(2, 1)])
        return {"kind": "branch", "layers": styled(channels[resolution], 3, 1, False) + in_precision(half(resolution), layers) +
                ([side([3, resolution // 2, resolution // 2], skip)] if resolution > 4 else [])}

    generator = [side([512, 1, 1], [{"kind": "linear", "out": 512}, {"kind": "activation"}] * 2),
                 {"kind": "constant", "to": [512, 4, 4]}]
    generator += synthesis(4, channels[4], False) + [to_rgb(4)]
    for i in range(3, depth + 1):
        generator += synthesis(2 ** i, channels[2 ** i], True) + synthesis(2 ** i, channels[2 ** i], False) + [to_rgb(2 ** i)]
    # Blits, geometry at twice the size, colours; before them some 15 kernels over a number of each image for each of 13
    # random transformations.
    judge = [side([1, 1, 1], [elementwise()] * 195), side([3, 2 * size, 2 * size], [elementwise()] * 6), side([3, size, size], [elementwise()] * 6),
             {"kind": "convolution", "out": channels[size], "kernel": 1, "bias": False, "precision": half(size)}, {**BIASED, "precision": half(size)}]
    for i in range(depth, 2, -1):
        here, below = channels[2 ** i], channels[2 ** (i - 1)]
        judge.append({"kind": "residual", "precision": half(2 ** i), "layers": [
            {"kind": "convolution", "out": here, "kernel": 3, "bias": False}, BIASED,
            FILTER,
            {"kind": "convolution", "out": below, "kernel": 3, "stride": 2, "padding": 1, "bias": False}, BIASED],
            # The filter of the shortcut computes every fourth pixel only; the gain and the limit after it are a kernel.
            "shortcut": [{"kind": "downsample", "factor": 2}, {"kind": "convolution", "out": below, "kernel": 1, "bias": False},
                         elementwise(1, 1, (2, 1))]})
    judge += [elementwise(), {"kind": "concat", "channels": 1}, {"kind": "convolution", "out": 512, "kernel": 3, "bias": False}, BIASED,
              {"kind": "linear", "out": 512}, {"kind": "activation"}, {"kind": "linear", "out": 1}]
    return {"schema": "ganymede.layers/1", "name": f"stylegan2-ada-{size}", "executor": "eager",
            "networks": {"generator": {"input": [512, 1, 1], "layers": generator},
                         "discriminator": {"input": [3, size, size], "layers": judge}},
            "step": gan_step(path_length=True)}


def gan_step(path_length):
    """Regularizers on half a batch in every fourth step (path length) and on a batch in every 16th (R1), each with an update
    of its own. Beside Adam's 18 numbers for each parameter an update replaces NaN in the gradients (2 reads, 2 writes), and the
    moving average of the generator takes 3 reads and 2 writes."""
    guarded, average = 22 / 18, 5 / 18
    passes = [("generator", "forward", 1), ("discriminator", "forward", 1), ("discriminator", "backward-input", 1),
              ("generator", "backward", 1), ("generator", "update", guarded + average)]
    if path_length:
        passes += [("generator", "forward", 0.125), ("generator", "backward-input", 0.125), ("generator", "backward", 0.25),
                   ("generator", "update", guarded / 4)]
    passes += [("generator", "forward", 1), ("discriminator", "forward", 2), ("discriminator", "backward", 2),
               ("discriminator", "update", guarded), ("discriminator", "forward", 1 / 16),
               ("discriminator", "backward-input", 1 / 16), ("discriminator", "backward", 2 / 16), ("discriminator", "update", guarded / 16)]
    return [{"network": network, "pass": kind, "times": times, "name": f"{i}.{network}.{kind}"}
            for i, (network, kind, times) in enumerate(passes)]


def cyclegan():
    """Gavel's: the paper's with upsampling and convolution in place of transposed ones, padding by reflection (a kernel), and a
    discriminator of four halvings (eriklindernoren/PyTorch-GAN)."""
    norm = [{"kind": "norm", "affine": False}, {"kind": "activation"}]
    block = [elementwise(), {"kind": "convolution", "out": 256, "kernel": 3}, *norm, elementwise(),
             {"kind": "convolution", "out": 256, "kernel": 3}, norm[0]]
    layers = [elementwise(), {"kind": "convolution", "out": 64, "kernel": 7}, *norm]
    for out in (128, 256):
        layers += [{"kind": "convolution", "out": out, "kernel": 3, "stride": 2, "padding": 1}, *norm]
    layers += [{"kind": "repeat", "times": 9, "layers": [{"kind": "residual", "layers": block}]}]
    for out in (128, 64):
        layers += [{"kind": "upsample", "factor": 2}, {"kind": "convolution", "out": out, "kernel": 3}, *norm]
    layers += [elementwise(), {"kind": "convolution", "out": 3, "kernel": 7}, {"kind": "activation"}]
    judge = [{"kind": "convolution", "out": 64, "kernel": 4, "stride": 2, "padding": 1}, {"kind": "activation"}]
    for out in (128, 256, 512):
        judge += [{"kind": "convolution", "out": out, "kernel": 4, "stride": 2, "padding": 1}, *norm]
    judge += [elementwise(), {"kind": "convolution", "out": 1, "kernel": 4, "padding": 1}]
    passes = [("generator", "forward", 6), ("discriminator", "forward", 2), ("discriminator", "backward", 2),  # whose gradients are not used
              ("generator", "backward", 6), ("generator", "update", 1), ("discriminator", "forward", 4),
              ("discriminator", "backward", 4), ("discriminator", "update", 1)]
    return {"schema": "ganymede.layers/1", "name": "cyclegan-gavel", "executor": "eager",
            "networks": {"generator": {"copies": 2, "input": [3, 256, 256], "layers": layers},
                         "discriminator": {"copies": 2, "input": [3, 256, 256], "layers": judge}},
            "step": [{"network": network, "pass": kind, "times": times, "name": f"{i}.{network}.{kind}"}
                     for i, (network, kind, times) in enumerate(passes)]}


# Publication, list (a name, or a function's result), images in a step on the GPU, GPU, precision, executor, memory format,
# published seconds of a step.
def rows():
    for size, batch, per_thousand in ((128, 32, 13.25), (256, 16, 22.9), (512, 8, 73.7), (1024, 4, 157.95)):
        yield ("StyleGAN2-ADA", stylegan2_ada(size, 32768 if size >= 512 else 16384), batch, "V100", None, "eager", None,
               per_thousand * batch / 1000)
    for gpu, rates in (("K80", (0.5048, 0.5469)), ("P100", (2.4027,)), ("V100", (4.4261, 4.7356))):
        yield "Gavel", cyclegan(), 1, gpu, "fp32", "eager", None, 1 / statistics.mean(rates)
    tensorflow, nvidia, dlperf = (f"ResNet-50 ({name})" for name in ("TensorFlow", "NVIDIA", "DLPerf"))
    for publication, gpu, precision, executor, layout, batch, images in (  # TensorFlow's P100 are those of a DGX-1
            (tensorflow, "K80", "fp32", "graph", None, 64, 51.7), (tensorflow, "P100-SXM2", "fp32", "graph", None, 64, 219),
            (tensorflow, "P100-SXM2", "fp32", "graph", None, 32, 195), (nvidia, "V100", "fp32", "eager", None, 128, 362),
            (nvidia, "V100", "fp16", "eager", "channels_last", 256, 1178), (nvidia, "A100-80GB", "tf32", "eager", None, 256, 938),
            (nvidia, "A100-80GB", "fp16", "eager", "channels_last", 256, 2470), (dlperf, "V100", "fp16", "eager", None, 256, 815),
            (dlperf, "V100", "fp32", "graph", None, 128, 392.24)):
        yield publication, "resnet50", batch, gpu, precision, executor, layout, batch / images
    for gpu, batch, rates in (("K80", 64, (0.619, 0.7459)), ("P100", 64, (2.6195,)), ("V100", 64, (4.3948, 4.5258)),
                              ("P100", 128, (1.5844, 1.6277)), ("V100", 128, (2.4968, 2.5301))):
        yield "Gavel", "resnet50", batch, gpu, "fp32", "eager", None, 1 / statistics.mean(rates)


def recipe_rows():
    """Publication, recipe, images of a pass, GPU, published seconds of a pass on one GPU (HiFi-GAN's and NVAE's on two)."""
    for name, publication in (("stylegan2", "StyleGAN2"), ("stylegan3-t", "StyleGAN3-T"), ("hifi-gan", "HiFi-GAN"), ("nvae", "NVAE"),
                              ("pix2pixhd", "pix2pixHD")):
        for measured in json.load(open(os.path.join(ROOT, "traces/recipes", name + ".json")))["measured"]:
            for config, image, gpus, batch, images, per_thousand in measured["rows"]:
                if "/" not in config and (gpus == 1 or name in ("hifi-gan", "nvae")):
                    yield (publication, f"{name}{'/' + config if config else ''}{f'?image={image}' if image else ''}", images, measured["gpu"],
                           per_thousand * gpus * images / 1000)


# What is beside a kernel, as in calibration/kernel_steps.hpp: times the kernel, most seconds at so many bytes a second, and how many
# times as long grouped convolutions in 16 bits take.
SHARE, BANDWIDTH, BUILT_IN = 3, 900e9, 2.5
MOST, GROUPED = [60e-6 * 1.1 ** i for i in range(12)], [1, 1.15, 1.3, 1.5, 1.75, 2, 2.5, 3]
BANDWIDTHS = {"K80": 240e9, "P100": 732e9, "P100-SXM2": 732e9, "V100": 900e9, "A100-80GB": 2039e9, "A100-40GB": 1555e9,
              "RTX 2080 Ti": 616e9, "Titan RTX": 672e9, "Quadro RTX 6000": 672e9}


def is_grouped(kernel, gpu):
    """True if the kernel takes GROUPED times as long, as has_slow_groups() of calibration/kernel_steps.cpp says."""
    shape = re.fullmatch(r"\d+x(\d+)x.* -> (\d+),.* in (\d+) groups.*", kernel["shape"])
    if shape is None or kernel["precision"] not in ("fp16", "bf16"):
        return False
    inputs, outputs, groups = map(int, shape.groups())
    return not (gpu.startswith("A100") and inputs // groups % 2 == 0 and outputs // groups % 2 == 0)


def step_s(row, most, grouped):
    """A step with other constants than the program's, whose factor for grouped convolutions is in its kernels already."""
    gpu, kernels, _ = row
    most *= BANDWIDTH / BANDWIDTHS[gpu]
    seconds = 0
    for kernel_s, launches, is_of_groups in kernels:
        one = kernel_s * (grouped if is_of_groups else 1)
        seconds += launches * (one + min(SHARE * one, most))
    return seconds


def estimated(publications):
    """The constants with the least error of the logarithm: each publication counts once, large errors linearly, and the logarithm of the
    factor for groups is held to 0 with a fifth of a publication's weight."""
    def loss(most, grouped):
        total = 0.2 * math.log(grouped) ** 2
        for rows in publications.values():
            errors = [abs(math.log(step_s(row, most, grouped) / row[2])) for row in rows]
            total += statistics.mean(error ** 2 if error < 0.25 else 0.5 * error - 0.0625 for error in errors)
        return total
    return min(((most, grouped) for most in MOST for grouped in GROUPED), key=lambda both: loss(*both))


def fit(publications):
    most, grouped = estimated(publications)
    print(f"\nbeside a kernel at most {1e6 * most:.0f} us, groups in 16 bits {grouped} times\n\n"
          "| left out | at most | groups | its error | nothing beside |\n|---|---|---|---|---|")
    means, befores = [], []
    for name, rows in publications.items():
        most, grouped = estimated({other: of for other, of in publications.items() if other != name})
        means.append(statistics.mean(abs(step_s(row, most, grouped) / row[2] - 1) for row in rows))
        befores.append(statistics.mean(abs(step_s(row, 0, 1) / row[2] - 1) for row in rows))
        print(f"| {name} | {1e6 * most:.0f} us | {grouped} | {100 * means[-1]:.1f} % | {100 * befores[-1]:.1f} % |")
    print(f"\nleft out: mean error of {len(means)} publications {100 * statistics.mean(means):.1f} %, median {100 * statistics.median(means):.1f} %; "
          f"with nothing beside {100 * statistics.mean(befores):.1f} % and {100 * statistics.median(befores):.1f} %")


def carried(steps):
    """Errors of steps that are carried from the published step of another GPU: by the model's ratio of the two GPUs, as
    "workload.measured" does it, and by that of their bandwidths. Both directions of each pair count."""
    print("\n| network | batch | from | to | carried | published | error | by bandwidths |\n|---|---|---|---|---|---|---|---|")
    errors, rows = {}, []
    generation = lambda gpu: "Turing" if "RTX" in gpu else gpu[:2]
    for (name, layers, batch, *_), gpus in steps.items():
        for source, (source_s, source_model_s) in gpus.items():
            for target, (target_s, target_model_s) in gpus.items():
                if source == target:
                    continue
                seconds = target_model_s * source_s / source_model_s
                by_bandwidths = source_s * BANDWIDTHS[source] / BANDWIDTHS[target] / target_s - 1
                errors.setdefault(name, []).append((seconds / target_s - 1, by_bandwidths))
                rows.append((f"{'one' if generation(source) == generation(target) else 'another'} generation", name, {source, target},
                             math.log(seconds / target_s), math.log1p(by_bandwidths)))
                print(f"| {layers} ({name}) | {batch} | {source} | {target} | {seconds * 1e3:.1f} ms | {target_s * 1e3:.1f} ms | "
                      f"{100 * errors[name][-1][0]:+.0f} % | {100 * by_bandwidths:+.0f} % |")
    every = [pair for of in errors.values() for pair in of]
    logs = sorted(abs(math.log1p(error)) for error, _ in every)
    print()
    for name, of in [*errors.items(), ("carried", every)]:
        print(f"{name}: mean error {100 * statistics.mean(abs(e) for e, _ in of):.1f} % of {len(of)}, by the ratio of bandwidths "
              f"{100 * statistics.mean(abs(e) for _, e in of):.1f} %")
    print(f"90 % within a factor of {math.exp(logs[math.ceil(0.9 * len(logs)) - 1]):.2f}\n")
    step_fits.print_carriers(rows)


def asked(options, folder):
    """Publication, name, GPU, images, precision, arguments of `kernels`, published seconds, and what a step is carried by."""
    for publication, layers, batch, gpu, precision, executor, layout, published in rows():
        if isinstance(layers, str):
            path = os.path.join(ROOT, "traces/layers", layers + ".json")
            layers = json.loads("".join(line for line in open(path) if not line.startswith("//")))
        if layout:
            layers["memory_format"] = layout
        file = os.path.join(folder, f"{layers['name']}-{layout or 'channels_first'}.json")
        with open(file, "w") as out:
            json.dump(layers, out)
        yield (publication, layers["name"], gpu, batch, precision or "mixed", ["--model", file, "--executor", executor] +
               (["--precision", precision] if precision else []), published, (publication, layers["name"], batch, precision, executor, layout))
    for publication, recipe, batch, gpu, published in recipe_rows():
        yield publication, recipe, gpu, batch, "recipe's", ["--recipe", recipe], published, (publication, recipe, batch)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--layers", help="folder for the lists of layers that are made")
    parser.add_argument("--fit", action="store_true", help="estimate again what is beside a kernel")
    options = parser.parse_args()
    folder = options.layers or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    errors, steps, publications = {}, {}, {}
    print("| network | GPU | batch | precision | published | predicted | error | held by 90 % | kernels alone | error |\n|---|---|---|---|---|---|---|---|---|---|")
    for publication, name, gpu, batch, precision, arguments, published, carried_by in asked(options, folder):
        run = subprocess.run([options.program, "kernels", "--gpu", gpu, "--batch", str(batch), "--format", "json"] + arguments,
                             check=True, capture_output=True, text=True)
        answer = json.loads(run.stdout)
        step, kernels = answer["step"], answer["kernels"]
        low, high = step["interval_s"]
        alone = max(step["kernels_s"], step["host_s"])
        error, before = step["seconds"] / published - 1, alone / published - 1
        steps.setdefault(carried_by, {})[gpu] = (published, alone)
        errors.setdefault(publication, []).append((error, before, low <= published <= high))
        publications.setdefault(publication, []).append(
            (gpu, [(k["seconds"] / (BUILT_IN if is_grouped(k, gpu) else 1), k["launches"], is_grouped(k, gpu)) for k in kernels], published))
        print(f"| {name} ({publication}) | {gpu} | {batch} | {precision} | {published * 1e3:.1f} ms | {step['seconds'] * 1e3:.1f} ms | "
              f"{100 * error:+.0f} % | {'yes' if low <= published <= high else 'no'} | {alone * 1e3:.1f} ms | {100 * before:+.0f} % |")
    print()
    every = [row for of in errors.values() for row in of]
    for name, of in [*errors.items(), ("all", every)]:
        print(f"{name}: mean error {100 * statistics.mean(abs(e) for e, _, _ in of):.1f} %, kernels alone "
              f"{100 * statistics.mean(abs(e) for _, e, _ in of):.1f} %; held {sum(held for _, _, held in of)} of {len(of)}")
    if options.fit:
        fit(publications)
    carried(steps)


if __name__ == "__main__":
    main()
