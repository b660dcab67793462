#!/usr/bin/env python3
"""Steps of published networks from their layers alone: the model of kernel times against constant shares.

  bench/networks.py [--program build/release/bin/ganymede] [--layers FOLDER]

Nothing is fitted to these figures. "Constant shares" is the roofline that lists of layers had before: half of the peak,
0.83 of the bandwidth, 3.8 us a launch, a backward pass 1.3 times its work. --layers keeps the lists that are made here.
The last table carries published steps from one GPU to another, as a step that a user has measured is carried.

Published figures: StyleGAN2-ADA (NVlabs/stylegan2-ada-pytorch README @d72cc7d041b4: 1,000 images on one V100, mixed
precision), StyleGAN3-T (NVlabs/stylegan3 docs/configs.md @c233a919a6fa), CycleGAN (stanford-futuredata/gavel @c4fa40097339,
both of its tables where they have it), ResNet-50 (tensorflow/docs benchmarks.md @62da04c02d67, 2017; NVIDIA
DeepLearningExamples ConvNets/resnet50v1.5 @291f0d02e815; OneFlow DLPerf @c89430bac64f; Gavel).
The layers of StyleGAN2-ADA and StyleGAN3-T follow their papers and published code: layer for layer the convolutions, styles,
filters, noise and activations, in fp16 at the four highest resolutions.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile

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


def styled_filters(channels, out, kernel, demodulate):
    """The same of StyleGAN3, whose convolutions have the scaled filters of each image: times the style, by the norm, times the
    gain of the input, and as a copy in 16 bits."""
    each = [SCALED]
    if demodulate:  # the product with 1 / norm, whose gradient goes to both, and the sum of the two ways backward
        each += [SQUARE, SUM, elementwise(1, 1, (4, 2), broadcast=True), elementwise(0, 0, (2, 1))]
    each += [elementwise(1, 1, (1, 1), broadcast=True), elementwise(1, 0.5, (0.5, 1))]
    return in_precision("fp32", [side([512, 1, 1], [{"kind": "linear", "out": channels}]), side([out, channels, kernel * kernel], each)])


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


def stylegan3_t(size, base):
    """Fourteen layers whose rates follow section 3 of the paper; each ends in filters at twice the higher rate."""
    count, critical, margin = 14, 2, 10
    first_cutoff, first_stop = 2, 2 ** 2.1
    last_cutoff = size / 2
    last_stop = last_cutoff * 2 ** 0.3
    exponents = [min(i / (count - critical), 1) for i in range(count + 1)]
    cutoffs = [first_cutoff * (last_cutoff / first_cutoff) ** e for e in exponents]
    stops = [first_stop * (last_stop / first_stop) ** e for e in exponents]
    rates = [2 ** math.ceil(math.log2(min(stop * 2, size))) for stop in stops]
    sizes = [rate + margin * 2 for rate in rates]
    sizes[-2:] = [size, size]
    channels = [round(min(base / 2 / cutoff, 512)) for cutoff in cutoffs]
    channels[-1] = 3
    layers = [side([512, 1, 1], [{"kind": "linear", "out": 512}, {"kind": "activation"}] * 2),
              {"kind": "linear", "out": channels[0]},  # the Fourier features' frequencies and their mix
              {"kind": "reshape", "to": [channels[0], 1, 1]},
              {"kind": "upsample", "factor": sizes[0]},
              {"kind": "convolution", "out": channels[0], "kernel": 1, "bias": False}]
    for i in range(count + 1):
        before, rate = max(i - 1, 0), rates[i]
        precision = "fp16" if rate * 2 ** 4 > size else "fp32"
        kernel = 1 if i == count else 3
        out = channels[i]
        inner = sizes[before]
        layers += styled_filters(channels[before], out, kernel, i < count)
        layers += in_precision(precision, [{"kind": "reshape", "to": [channels[before], inner, inner]},
                                           {"kind": "convolution", "out": out, "kernel": kernel, "bias": False, "each_image": True}])
        if i < count:  # filtered activation: up, leaky ReLU, down, within one kernel
            fine = 2 * max(rates[before], rate)
            fine = round(fine * sizes[i] / rate)
            layers += in_precision(precision, [side([out, fine, fine], [{**elementwise(0.5, 0.5), "shared": [17.7, 17.7]}])])
    generator = {"input": [512, 1, 1], "layers": layers}
    judge = stylegan2_ada(size, base)["networks"]["discriminator"]
    return {"schema": "ganymede.layers/1", "name": f"stylegan3-t-{size}", "executor": "eager",
            "networks": {"generator": generator, "discriminator": judge}, "step": gan_step(path_length=False)}


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


# Name, list (a name, or a function's result), images in a step on the GPU, GPU, precision, executor, memory format, passes,
# published seconds of a step.
def rows():
    for size, batch, per_thousand in ((128, 32, 13.25), (256, 16, 22.9), (512, 8, 73.7), (1024, 4, 157.95)):
        yield ("StyleGAN2-ADA", stylegan2_ada(size, 32768 if size >= 512 else 16384), batch, "V100", None, "eager", None, 1,
               per_thousand * batch / 1000)
    for size, batch, passes, per_thousand in ((128, 16, 2, 73.68), (256, 16, 2, 89.15), (512, 8, 4, 137.33), (1024, 4, 8, 221.85)):
        yield ("StyleGAN3-T", stylegan3_t(size, 32768), batch, "V100", None, "eager", None, passes, per_thousand * batch / 1000)
    for gpu, rates in (("K80", (0.5048, 0.5469)), ("P100", (2.4027,)), ("V100", (4.4261, 4.7356))):
        yield "CycleGAN", cyclegan(), 1, gpu, "fp32", "eager", None, 1, 1 / statistics.mean(rates)
    for gpu, precision, executor, layout, batch, images in (  # TensorFlow's P100 are those of a DGX-1
            ("K80", "fp32", "graph", None, 64, 51.7), ("P100-SXM2", "fp32", "graph", None, 64, 219),
            ("P100-SXM2", "fp32", "graph", None, 32, 195),
            ("V100", "fp32", "eager", None, 128, 362), ("V100", "fp16", "eager", "channels_last", 256, 1178),
            ("V100", "fp16", "eager", None, 256, 815), ("V100", "fp32", "graph", None, 128, 392.24),
            ("A100-80GB", "tf32", "eager", None, 256, 938), ("A100-80GB", "fp16", "eager", "channels_last", 256, 2470)):
        yield "ResNet-50", "resnet50", batch, gpu, precision, executor, layout, 1, batch / images
    for gpu, batch, rates in (("K80", 64, (0.619, 0.7459)), ("P100", 64, (2.6195,)), ("V100", 64, (4.3948, 4.5258)),
                              ("P100", 128, (1.5844, 1.6277)), ("V100", 128, (2.4968, 2.5301))):
        yield "ResNet-50 (Gavel)", "resnet50", batch, gpu, "fp32", "eager", None, 1, 1 / statistics.mean(rates)


SHEETS = {"K80": (4.113e12, 4.113e12, 240e9), "P100": (9.526e12, 9.526e12, 732e9), "P100-SXM2": (10.6e12, 10.6e12, 732e9), "V100": (15.7e12, 125e12, 900e9),
          "A100-80GB": (19.5e12, 312e12, 2039e9)}


def constant_shares(program, layers, batch, gpu, precision):
    arguments = [program, "import", "layers", layers, "--batch", str(batch), "--quiet"] + (["--precision", precision] if precision else [])
    trace = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    fp32, tensor, bandwidth = SHEETS[gpu]
    rate = fp32 if trace["precision"] == "fp32" and precision else tensor / 2 if trace["precision"] == "tf32" else tensor
    seconds = 0
    for phase in trace["batches"][0]["phases"]:
        if phase["stream"] != "compute":
            continue
        backward = 1.25 if "backward-input" in phase["name"] or "backward_through" in phase["name"] else 1.3 if "backward" in phase["name"] else 1
        moved = phase["bytes_read"] + phase["bytes_written"]
        seconds += max(backward * max(phase["flops"] / (0.5 * rate), moved / (0.833 * bandwidth)), 3.8e-6 * phase["launches"])
    return seconds


def carried(steps):
    """Errors of steps that are carried from the published step of another GPU: the model's ratio of the two GPUs, as
    "workload.measured" does it. Both directions of each pair count."""
    print("\n| network | batch | from | to | carried | published | error |\n|---|---|---|---|---|---|---|")
    errors = []
    for (name, layers, batch, *_), gpus in steps.items():
        for source, (source_s, source_model_s) in gpus.items():
            for target, (target_s, target_model_s) in gpus.items():
                if source == target:
                    continue
                seconds = target_model_s * source_s / source_model_s
                errors.append(seconds / target_s - 1)
                print(f"| {layers} ({name}) | {batch} | {source} | {target} | {seconds * 1e3:.1f} ms | {target_s * 1e3:.1f} ms | "
                      f"{100 * errors[-1]:+.0f} % |")
    logs = sorted(abs(math.log1p(error)) for error in errors)
    print(f"\ncarried: mean error {100 * statistics.mean(abs(error) for error in errors):.1f} % of {len(errors)}, 90 % within a factor of "
          f"{math.exp(logs[math.ceil(0.9 * len(logs)) - 1]):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--layers", help="folder for the lists of layers that are made")
    options = parser.parse_args()
    folder = options.layers or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    errors, steps = {}, {}
    print("| network | GPU | batch | precision | published | kernel model | error | held by 90 % | constant shares | error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, layers, batch, gpu, precision, executor, layout, _, published in rows():
        if isinstance(layers, str):
            path = os.path.join(ROOT, "traces/layers", layers + ".json")
            text = "".join(line for line in open(path) if not line.startswith("//"))
            layers = json.loads(text)
        if layout:
            layers["memory_format"] = layout
        file = os.path.join(folder, f"{layers['name']}-{layout or 'channels_first'}.json")
        with open(file, "w") as out:
            json.dump(layers, out)
        arguments = [options.program, "kernels", "--gpu", gpu, "--model", file, "--batch", str(batch), "--executor", executor,
                     "--format", "json"] + (["--precision", precision] if precision else [])
        step = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)["step"]
        low, high = step["interval_s"]
        before = constant_shares(options.program, file, batch, gpu, precision)
        error, old = step["seconds"] / published - 1, before / published - 1
        steps.setdefault((name, layers["name"], batch, precision, executor, layout), {})[gpu] = (published, step["seconds"])
        errors.setdefault(name, []).append((error, old, low <= published <= high))
        print(f"| {layers['name']} ({name}) | {gpu} | {batch} | {precision or 'mixed'} | {published * 1e3:.1f} ms | {step['seconds'] * 1e3:.1f} ms | "
              f"{100 * error:+.0f} % | {'yes' if low <= published <= high else 'no'} | {before * 1e3:.1f} ms | {100 * old:+.0f} % |")
    print()
    every = [row for of in errors.values() for row in of]
    for name, of in [*errors.items(), ("all", every)]:
        print(f"{name}: mean error {100 * statistics.mean(abs(e) for e, _, _ in of):.1f} %, with constant shares "
              f"{100 * statistics.mean(abs(e) for _, e, _ in of):.1f} %; held {sum(held for _, _, held in of)} of {len(of)}")
    carried(steps)


if __name__ == "__main__":
    main()
