#!/usr/bin/env python3
"""Compares the growing models and the gradient penalty of `ganymede train` with PyTorch.

Trains progressive-gan with WGAN-GP through several stages, in which layers are trained or fade in, and the same
networks written in PyTorch. PyTorch's autograd differentiates the penalty twice; ganymede uses a central difference.
Weights, batches, latents and the points between real and generated images come from ganymede's random streams, which
this script draws too. Prints and compares the losses of every step.

  python3 tools/check_growth_against_pytorch.py --steps 10 --stage-steps 2

Exit code 0: everything is within the tolerance; 1: it is not; 77: PyTorch is not installed.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

from check_against_pytorch import Batches, F, Stream, torch, write_idx

RATE, EPSILON = 1e-3, 1.0
LATENT, SIZE, COLOURS, PENALTY = 128, 32, 3, 10.0


def channels_at(size):
    return max(16, min(128, 2048 // size))


def generator_layers(size, fading):
    """Pairs (name, shape of the weights) in the order in which the weights are drawn."""
    layers = [("conv4.1", (LATENT, channels_at(4), 4, 4)), ("conv4.2", (channels_at(4), channels_at(4), 3, 3))]
    at = 8
    while at <= size:
        before, now = channels_at(at // 2), channels_at(at)
        layers += [(f"conv{at}.1", (now, before, 3, 3)), (f"conv{at}.2", (now, now, 3, 3))]
        at *= 2
    layers.append((f"rgb{size}", (COLOURS, channels_at(size), 1, 1)))
    if fading:
        layers.append((f"rgb{size // 2}", (COLOURS, channels_at(size // 2), 1, 1)))
    return layers


def discriminator_layers(size, fading):
    layers, at = [(f"rgb{size}", (channels_at(size), COLOURS, 1, 1))], size
    while at > 4:
        now, after = channels_at(at), channels_at(at // 2)
        layers += [(f"conv{at}.1", (now, now, 3, 3)), (f"conv{at}.2", (after, now, 3, 3))]
        if fading and at == size:
            layers.append((f"rgb{at // 2}", (after, COLOURS, 1, 1)))
        at //= 2
    last = channels_at(4)
    return layers + [("conv4.1", (last, last + 1, 3, 3)), ("conv4.2", (last, last, 4, 4)), ("logit", (1, last, 1, 1))]


def draw(network, layers, seed):
    stream, values = Stream(seed, f"kernel/initial/{network}"), {}
    for name, shape in layers:
        weight = torch.tensor([stream.normal() for _ in range(math.prod(shape))], dtype=torch.float64).float()
        values[name + ".weight"] = weight.reshape(shape)
        biases = shape[1] if network == "generator" and name == "conv4.1" else shape[0]
        for _ in range(biases):
            stream.uniform()
        values[name + ".bias"] = torch.zeros(biases)
    return values


class Player:
    def __init__(self):
        self.values, self.adam = {}, None

    def enter(self, drawn):
        moments = self.adam.state if self.adam else {}
        kept = {name: self.values.get(name, value).detach().clone().requires_grad_() for name, value in drawn.items()}
        adam = torch.optim.Adam(kept.values(), lr=RATE, betas=(0.0, 0.99), eps=EPSILON)
        steps = max([int(state["step"]) for state in moments.values()] or [0])
        for name, value in kept.items():
            old = moments.get(self.values.get(name), None) if name in self.values else None
            # ganymede's Adam counts the updates of the network, PyTorch's those of each parameter.
            adam.state[value] = {"step": torch.tensor(float(steps)),
                                 "exp_avg": old["exp_avg"] if old else torch.zeros_like(value),
                                 "exp_avg_sq": old["exp_avg_sq"] if old else torch.zeros_like(value)}
        self.values, self.adam = kept, adam

    def equalized(self, name, x, gain, slope, padding=0, transposed=False):
        weight, bias = self.values[name + ".weight"], self.values[name + ".bias"]
        fan_in = weight.shape[0 if transposed else 1] * weight.shape[2] * weight.shape[3]
        convolution = F.conv_transpose2d if transposed else F.conv2d
        y = convolution(x, weight * (gain / math.sqrt(fan_in)), bias, padding=padding)
        return y if slope == 1 else F.leaky_relu(y, slope)

    def block(self, name, x):
        return self.equalized(name, x, math.sqrt(2), 0.2, padding=1)


def pixel_norm(x):
    return x / torch.sqrt((x * x).mean(1, keepdim=True) + 1e-8)


def generate(g, z, size, fading, share):
    x = pixel_norm(z)
    x = pixel_norm(g.equalized("conv4.1", x, math.sqrt(2) / 4, 0.2, transposed=True))
    x = pixel_norm(g.block("conv4.2", x))
    at = 8
    while at <= size:
        before, x = x, F.interpolate(x, scale_factor=2, mode="nearest")
        x = pixel_norm(g.block(f"conv{at}.2", pixel_norm(g.block(f"conv{at}.1", x))))
        at *= 2
    image = g.equalized(f"rgb{size}", x, 1, 1)
    if fading:
        old = F.interpolate(g.equalized(f"rgb{size // 2}", before, 1, 1), scale_factor=2, mode="nearest")
        image = share * image + (1 - share) * old
    return image


def judge(d, image, size, fading, share):
    x, at = d.equalized(f"rgb{size}", image, math.sqrt(2), 0.2), size
    while at > 4:
        x = F.avg_pool2d(d.block(f"conv{at}.2", d.block(f"conv{at}.1", x)), 2)
        if fading and at == size:
            old = d.equalized(f"rgb{at // 2}", F.avg_pool2d(image, 2), math.sqrt(2), 0.2)
            x = share * x + (1 - share) * old
        at //= 2
    deviation = torch.sqrt(((x - x.mean(0)) ** 2).mean(0) + 1e-8).mean()
    x = torch.cat([x, deviation.expand(x.shape[0], 1, 4, 4)], 1)
    x = d.equalized("conv4.2", d.block("conv4.1", x), math.sqrt(2), 0.2)
    return d.equalized("logit", x, 1, 1).reshape(-1)


def shrunken(images, size):
    block = SIZE // size
    sums = images.long().reshape(len(images), COLOURS, size, block, size, block).sum((3, 5))
    return (sums + block * block // 2) // (block * block)


def train(options, images):
    g, d = Player(), Player()
    latents, place, history = Stream(options.seed, "kernel/latent"), None, []
    batches = Batches(torch.arange(len(images)), options.batch, options.seed)
    parts = 2 * int(math.log2(SIZE // 4))
    for step in range(options.steps):
        part = min(step // options.stage_steps, parts)
        size, fading = 4 << ((part + 1) // 2), part % 2 == 1
        share = (step - part * options.stage_steps + 1) / (options.stage_steps + 1)
        if place != part:
            place = part
            g.enter(draw("generator", generator_layers(size, fading), options.seed))
            d.enter(draw("discriminator", discriminator_layers(size, fading), options.seed))
            shown = shrunken(images, size)
        critic = lambda image: judge(d, image, size, fading, share)
        chosen = torch.round((batches.next() + 1.0) / (2.0 / 255.0)).long()
        real = shown[chosen].float() * (2.0 / 255.0) - 1.0
        if fading:
            real = share * real + (1 - share) * F.interpolate(F.avg_pool2d(real, 2), scale_factor=2, mode="nearest")
        values = torch.tensor([latents.normal() for _ in range(LATENT * options.batch)], dtype=torch.float64).float()
        fake = generate(g, values.reshape(LATENT, -1).t().reshape(-1, LATENT, 1, 1), size, fading, share)
        d.adam.zero_grad()
        u = torch.tensor([latents.uniform() for _ in range(options.batch)], dtype=torch.float64).float().reshape(-1, 1, 1, 1)
        between = (u * real + (1 - u) * fake.detach()).requires_grad_()
        gradient, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = PENALTY * ((gradient.flatten(1).norm(dim=1) - 1) ** 2).mean()
        loss = -critic(real).mean() + critic(fake.detach()).mean() + penalty
        loss.backward()
        d.adam.step()
        g.adam.zero_grad()
        wish = -critic(fake).mean()
        wish.backward()
        g.adam.step()
        history.append((f"{size}x{size}{' fading in' if fading else ''}", loss.item(), wish.item()))
    return history


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--stage-steps", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of losses, relative")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    images = torch.randint(0, 256, (3 * options.batch + 1, COLOURS, SIZE, SIZE), dtype=torch.uint8)
    with tempfile.TemporaryDirectory() as folder:
        write_idx(os.path.join(folder, "train-images-idx3-ubyte"), images)
        command = [options.program, "train", "--model", "progressive-gan", "--image", f"{SIZE}x{SIZE}x{COLOURS}", "--dataset", folder,
                   "--steps", str(options.steps), "--stage-steps", str(options.stage_steps), "--batch", str(options.batch), "--seed",
                   str(options.seed), "--lr", str(RATE), "--epsilon", str(EPSILON), "--format", "json", "--quiet", "--backend", options.backend,
                   "--host-random", *(["--precision", "fp32"] if options.backend == "cuda" else [])]
        ours = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["history"]
    theirs, worst = train(options, images), 0.0
    print(f"progressive-gan, batch {options.batch}, wgan-gp\n{'step':>5} {'stage':<16} {'discriminator':>14} {'PyTorch':>12} "
          f"{'generator':>12} {'PyTorch':>12}")
    for entry in ours:
        stage, loss, wish = theirs[entry["step"] - 1]
        for a, b in ((entry["discriminator"], loss), (entry["generator"], wish)):
            worst = max(worst, abs(a - b) / max(abs(b), 1e-1))
        print(f"{entry['step']:>5} {stage:<16} {entry['discriminator']:>14.6f} {loss:>12.6f} {entry['generator']:>12.6f} {wish:>12.6f}")
    good = worst <= options.tolerance
    print(f"losses at most {worst:.1e} off, expected {options.tolerance:.0e}: {'good' if good else 'BAD'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
