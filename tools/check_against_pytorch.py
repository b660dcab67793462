#!/usr/bin/env python3
"""Compares training steps of `ganymede train` with the same steps in PyTorch.

Draws initial weights with PyTorch, writes them as safetensors, trains both programs for some steps from these weights
on the same batches and latents, and compares the losses of every step and the weights at the end. Random numbers are
those of ganymede, which this script draws too (xoshiro256++, polar method, Fisher-Yates). It covers the models
without dropout: dcgan-28, dcgan-32 and dcgan-64, the conditional cgan-28 and cgan-32, the autoencoders vae-28 and
vae-32, whose losses are those of the encoder (divergence) and the decoder (reconstruction), cyclegan-32, whose
generators' loss includes the cycles', srgan-32, whose generator's includes the error of the restored images, and
stylegan2-28 and stylegan2-32: of their steps the first has R1, and the first, fifth and ninth have the path length
regularisation.

Adam's epsilon is 1e-4, its rate 1e-5, and the initial weights have a standard deviation of 0.1, so that rounding errors
do not grow (StyleGAN2's weights are scaled when they are used: it has an epsilon of 0.1 and its own rate). With the
usual 1e-8, 2e-4 and 0.02, batch norms divide by deviations near their own epsilon, and Adam steps by the sign of gradients that are almost 0. A difference in the seventh digit then becomes one of a percent within ten
steps, even between PyTorch in single and PyTorch in double precision.

What remains are inputs of ReLUs at 0, whose sign rounding decides. Of six seeds (dcgan-32, hinge) five are within 1e-5 of
PyTorch in double precision in both programs, and one is 8e-5 off in this one and 4e-5 in PyTorch. Losses below 1 are
therefore compared by their difference.

  python3 tools/check_against_pytorch.py --model dcgan-32 --steps 10 --batch 8 --loss hinge

Exit code 0: everything is within the tolerance; 1: it is not; 77: PyTorch is not installed.
"""
import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

try:
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
except ImportError:
    print("skipped: there is no PyTorch here (Debian: python3-torch)")
    sys.exit(77)

import stylegan2_in_pytorch as style

MASK = (1 << 64) - 1
SHAPES = {"28": (1, 28, 7), "32": (3, 32, 4), "64": (3, 64, 4)}
MODELS = ("dcgan-28", "dcgan-32", "dcgan-64", "cgan-28", "cgan-32", "vae-28", "vae-32", "cyclegan-32", "srgan-32",
          "stylegan2-28", "stylegan2-32")
LATENT, CODE, CLASSES, CHANNELS, SLOPE = 100, 32, 10, 64, 0.2
RATE, EPSILON = 1e-5, 1e-4
STYLE_RATE, STYLE_EPSILON = 2e-3, 1e-1


class Stream:
    """The random stream of common/random.cpp: the same numbers for the same seed and consumer."""

    def __init__(self, seed, consumer):
        hash_ = 0xCBF29CE484222325
        for byte in consumer.encode():
            hash_ = ((hash_ ^ byte) * 0x100000001B3) & MASK
        word = seed ^ self.rotate(hash_, 17)
        self.state = []
        for _ in range(4):
            word = (word + 0x9E3779B97F4A7C15) & MASK
            z = word
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.state.append(z ^ (z >> 31))

    @staticmethod
    def rotate(x, k):
        return ((x << k) | (x >> (64 - k))) & MASK

    def next(self):
        s = self.state
        result = (self.rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = self.rotate(s[3], 45)
        return result

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53

    def below(self, bound):
        unfair = (2**64 - bound) % bound
        value = self.next()
        while value < unfair:
            value = self.next()
        return value % bound

    def normal(self):
        while True:
            u, v = 2 * self.uniform() - 1, 2 * self.uniform() - 1
            square = u * u + v * v
            if 0 < square < 1:
                return u * math.sqrt(-2 * math.log(square) / square)


class Chain(nn.Module):
    """The layers under ganymede's names, in its order."""

    def __init__(self):
        super().__init__()
        self.order = []

    def add(self, name, layer):
        self.order.append(name)
        self.add_module(name, layer)


class Generator(Chain):
    def __init__(self, channels, size, least, inputs):
        super().__init__()
        width, at, number = CHANNELS * size // least // 2, least, 1
        self.add("conv1", nn.ConvTranspose2d(inputs, width, least, 1, 0, bias=False))
        self.add("norm1", nn.BatchNorm2d(width))
        while 2 * at < size:
            number += 1
            self.add(f"conv{number}", nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False))
            width, at = width // 2, 2 * at
            self.add(f"norm{number}", nn.BatchNorm2d(width))
        self.add(f"conv{number + 1}", nn.ConvTranspose2d(width, channels, 4, 2, 1, bias=False))

    def forward(self, x):
        for name in self.order:
            x = getattr(self, name)(x)
            if name.startswith("norm"):
                x = F.relu(x)
        return torch.tanh(x)


class Discriminator(Chain):
    def __init__(self, channels, size, least, outputs):
        super().__init__()
        width, at, number = CHANNELS, size // 2, 1
        self.add("conv1", nn.Conv2d(channels, width, 4, 2, 1, bias=False))
        while at > least:
            number += 1
            self.add(f"conv{number}", nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False))
            width, at = 2 * width, at // 2
            self.add(f"norm{number}", nn.BatchNorm2d(width))
        self.last = f"conv{number + 1}"
        self.add(self.last, nn.Conv2d(width, outputs, least, 1, 0, bias=False))

    def forward(self, x):
        for name in self.order:
            x = getattr(self, name)(x)
            if name == "conv1" or name.startswith("norm"):
                x = F.leaky_relu(x, SLOPE)
        return x.flatten(1)


class Labelled(nn.Module):
    """A network that sees the class beside its input, a channel for each; `labels` is set before a pass."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        planes = F.one_hot(self.labels, CLASSES).float().reshape(-1, CLASSES, 1, 1).expand(-1, -1, *x.shape[2:])
        return self.inner(torch.cat([x, planes], 1))


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, 1, 1, bias=False) for _ in range(2))
        self.norm = nn.InstanceNorm2d(channels)

    def forward(self, x):
        return x + self.norm(self.conv2(F.relu(self.norm(self.conv1(x)))))


class Bias(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x):
        return x + self.bias.reshape(1, -1, 1, 1)


class Translator(Chain):
    def __init__(self, channels):
        super().__init__()
        self.add("conv1", nn.Conv2d(channels, 16, 7, 1, 3, bias=False))
        for number, width in ((2, 16), (3, 32)):
            self.add(f"conv{number}", nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False))
        for number in (1, 2, 3):
            self.add(f"block{number}", Residual(64))
        for number, width in ((4, 64), (5, 32)):
            self.add(f"conv{number}", nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False))
        self.add("conv6", nn.Conv2d(16, channels, 7, 1, 3, bias=False))
        self.add("bias6", Bias(channels))

    def forward(self, x):
        for name in self.order:
            x = getattr(self, name)(x)
            if name.startswith("conv") and name != "conv6":
                x = F.relu(F.instance_norm(x))
        return torch.tanh(x)


class Judge(Chain):
    def __init__(self, channels):
        super().__init__()
        self.add("conv1", nn.Conv2d(channels, 32, 4, 2, 1, bias=False))
        self.add("bias1", Bias(32))
        self.add("conv2", nn.Conv2d(32, 64, 4, 2, 1, bias=False))
        self.add("conv3", nn.Conv2d(64, 1, 4, 1, 1, bias=False))
        self.add("bias3", Bias(1))

    def forward(self, x):
        x = F.leaky_relu(self.bias1(self.conv1(x)), SLOPE)
        x = F.leaky_relu(F.instance_norm(self.conv2(x)), SLOPE)
        return self.bias3(self.conv3(x))


class PlainResidual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, 1, 1, bias=False) for _ in range(2))
        self.bias1, self.bias2 = Bias(channels), Bias(channels)

    def forward(self, x):
        return x + self.bias2(self.conv2(F.leaky_relu(self.bias1(self.conv1(x)), SLOPE)))


class Restorer(Chain):
    def __init__(self, channels):
        super().__init__()
        self.add("conv1", nn.Conv2d(channels, 64, 3, 1, 1, bias=False))
        self.add("bias1", Bias(64))
        for number in (1, 2, 3):
            self.add(f"block{number}", PlainResidual(64))
        for number, width in ((2, 64), (3, 32)):
            self.add(f"conv{number}", nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False))
            self.add(f"bias{number}", Bias(width // 2))
        self.add("conv4", nn.Conv2d(16, channels, 7, 1, 3, bias=False))
        self.add("bias4", Bias(channels))

    def forward(self, x):
        for name in self.order:
            x = getattr(self, name)(x)
            if name.startswith("bias") and name != "bias4":
                x = F.leaky_relu(x, SLOPE)
        return torch.tanh(x)


class Named(nn.Module):
    """A network whose parameters' names begin with a word."""

    def __init__(self, name, network):
        super().__init__()
        self.add_module(name, network)
        self.forward = network.forward


class Pair(nn.Module):
    """Two networks under one optimizer."""

    def __init__(self, names, kind, channels):
        super().__init__()
        self.names = names
        for name in names:
            self.add_module(name, kind(channels))

    def __getitem__(self, chain):
        return getattr(self, self.names[chain])


def draw(module):
    for layer in module.modules() if isinstance(module, nn.Module) else ():  # StyleGAN2's weights have been drawn
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(layer.weight, 0, 0.1)
        elif isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.weight, 1, 0.02)


def tensors_of(options, generator, discriminator):
    named = {}
    names = ("decoder", "encoder") if options.model.startswith("vae") else ("generator", "discriminator")
    for network, module in zip(names, (generator, discriminator)):
        for name, value in getattr(module, "inner", module).state_dict().items():
            if not name.endswith("num_batches_tracked"):
                named[f"{network}.{name}"] = value.detach()
    return named


def write_safetensors(path, tensors):
    header, data, at = {}, b"", 0
    for name in sorted(tensors):
        raw = tensors[name].contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape), "data_offsets": [at, at + len(raw)]}
        data, at = data + raw, at + len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
    return {
        name: torch.frombuffer(data, dtype=torch.float32, count=(e["data_offsets"][1] - e["data_offsets"][0]) // 4,
                               offset=e["data_offsets"][0]).reshape(e["shape"])
        for name, e in header.items() if name != "__metadata__"
    }


def write_idx(path, images):
    count, channels, height, width = images.shape
    extents = [count] + ([] if channels == 1 else [channels]) + [height, width]
    with open(path, "wb") as file:
        file.write(struct.pack(">BBBB", 0, 0, 8, len(extents)) + struct.pack(f">{len(extents)}I", *extents))
        file.write(images.numpy().tobytes())


def write_labels(folder, labels):
    with open(os.path.join(folder, "train-labels-idx1-ubyte"), "wb") as file:
        file.write(struct.pack(">II", 0x801, len(labels)) + bytes(labels.tolist()))


class Batches:
    """The order of images of kernel/data/batches.cpp."""

    def __init__(self, images, batch, seed, labels=None):
        self.labels = images if labels is None else labels
        self.images, self.batch, self.seed, self.epoch, self.at = images, batch, seed, 1, 0
        self.shuffle()

    def shuffle(self):
        random, order = Stream(self.seed, f"kernel/batches/{self.epoch}"), list(range(len(self.images)))
        for i in range(len(order) - 1, 0, -1):
            j = random.below(i + 1)
            order[i], order[j] = order[j], order[i]
        self.order = order

    def next(self):
        if self.at + self.batch > len(self.order):
            self.epoch, self.at = self.epoch + 1, 0
            self.shuffle()
        chosen = self.order[self.at : self.at + self.batch]
        self.at += self.batch
        self.classes = self.labels[chosen]
        return self.images[chosen].float() * (2.0 / 255.0) - 1.0


def losses_of(name):
    if name == "least-squares":
        return (lambda l: ((l - 1) ** 2).mean() / 2), (lambda l: (l**2).mean() / 2), (lambda l: ((l - 1) ** 2).mean())
    up, down = (lambda l: F.softplus(-l).mean()), (lambda l: F.softplus(l).mean())
    return {
        "non-saturating": (up, down, up),
        "r1": (up, down, up),
        "minimax": (up, down, lambda l: -F.softplus(l).mean()),
        "wgan-gp": (lambda l: -l.mean(), lambda l: l.mean(), lambda l: -l.mean()),
        "hinge": (lambda l: F.relu(1 - l).mean(), lambda l: F.relu(1 + l).mean(), lambda l: -l.mean()),
    }[name]


def normals(latents, count, batch):
    values = torch.tensor([latents.normal() for _ in range(count * batch)], dtype=torch.float64)
    return values.float().reshape(count, batch).t()


def train_autoencoder(options, decoder, encoder, images, labels):
    adam = torch.optim.Adam([*decoder.parameters(), *encoder.parameters()], lr=RATE, betas=(0.9, 0.999), eps=EPSILON)
    batches, latents = Batches(images, options.batch, options.seed, labels), Stream(options.seed, "kernel/latent")
    history = []
    for _ in range(options.steps):
        adam.zero_grad()
        real = batches.next()
        mean, log_variance = encoder(real).chunk(2, 1)
        z = mean + torch.exp(log_variance / 2) * normals(latents, CODE, options.batch)
        reconstruction = 2 * ((decoder(z.reshape(-1, CODE, 1, 1)) - real) ** 2).sum() / options.batch
        divergence = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum() / options.batch
        (reconstruction + divergence).backward()
        adam.step()
        history.append((divergence.item(), reconstruction.item()))
    return history


def train_cycles(options, generators, judges, images, others):
    rates = dict(lr=RATE, betas=(0.5, 0.999), eps=EPSILON)
    g_adam, d_adam = (torch.optim.Adam(pair.parameters(), **rates) for pair in (generators, judges))
    batches = Batches(images, options.batch, options.seed, others)
    real_loss, fake_loss, generator_loss = losses_of(options.loss)
    history = []
    for _ in range(options.steps):
        first = batches.next()
        real = (first, batches.classes.float() * (2.0 / 255.0) - 1.0)
        g_adam.zero_grad()
        fake = [generators[chain](real[chain]) for chain in (0, 1)]
        wish = sum(generator_loss(judges[chain](fake[chain])) + 10 * F.l1_loss(generators[1 - chain](fake[chain]), real[chain])
                   for chain in (0, 1))
        wish.backward()
        g_adam.step()
        d_adam.zero_grad()
        lie = sum(real_loss(judges[chain](real[1 - chain])) + fake_loss(judges[chain](fake[chain].detach())) for chain in (0, 1))
        lie.backward()
        d_adam.step()
        history.append((lie.item(), wish.item()))
    return history


def train(options, generator, discriminator, images, labels):
    styled = options.model.startswith("stylegan2")
    rates = dict(lr=STYLE_RATE, betas=(0.0, 0.99), eps=STYLE_EPSILON) if styled else dict(lr=RATE, betas=(0.5, 0.999), eps=EPSILON)
    penalty_every = style.PENALTY_EVERY if styled else 1
    r1 = style.PENALTY_EVERY * style.R1 if styled else 10
    path_length = style.PathLength()
    g_adam, d_adam = torch.optim.Adam(generator.parameters(), **rates), torch.optim.Adam(discriminator.parameters(), **rates)
    batches, latents = Batches(images, options.batch, options.seed, labels), Stream(options.seed, "kernel/latent")
    real_loss, fake_loss, generator_loss = losses_of(options.loss)
    history = []
    for step in range(options.steps):
        for _ in range(options.d_steps):
            d_adam.zero_grad()
            images_now = batches.next()
            generator.labels = discriminator.labels = batches.classes
            real = real_loss(discriminator(images_now))
            real.backward()
            if options.model.startswith("srgan"):
                fake = generator(F.avg_pool2d(images_now, 4))
            else:
                width = style.LATENT if styled else LATENT
                fake = generator(normals(latents, width, options.batch).reshape(-1, width, 1, 1))
            lie = fake_loss(discriminator(fake.detach()))
            lie.backward()
            penalty = torch.zeros(())
            if options.loss == "wgan-gp":
                u = torch.tensor([latents.uniform() for _ in range(options.batch)], dtype=torch.float64).float()
                u = u.reshape(-1, 1, 1, 1)
                between = (u * images_now + (1 - u) * fake.detach()).requires_grad_()
                gradient, = torch.autograd.grad(discriminator(between).sum(), between, create_graph=True)
                penalty = 10 * ((gradient.flatten(1).norm(dim=1) - 1) ** 2).mean()
                penalty.backward()
            if options.loss == "r1" and step % penalty_every == 0:
                at_real = images_now.clone().requires_grad_()
                gradient, = torch.autograd.grad(discriminator(at_real).sum(), at_real, create_graph=True)
                penalty = r1 / 2 * gradient.square().sum() / options.batch
                penalty.backward()
            d_adam.step()
        g_adam.zero_grad()
        wish = generator_loss(discriminator(fake))
        if options.model.startswith("srgan"):
            wish = wish + 100 * F.l1_loss(fake, images_now)
        if styled and step % style.PATH_EVERY == 0:
            wish = wish + path_length(generator, fake, lambda count: normals(latents, count, options.batch))
        wish.backward()
        g_adam.step()
        history.append((real.item() + lie.item() + penalty.item(), wish.item()))
    return history


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/bin/ganymede")
    parser.add_argument("--model", choices=MODELS, default="dcgan-32")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--d-steps", type=int, default=1)
    parser.add_argument("--loss", choices=("non-saturating", "minimax", "hinge", "wgan-gp", "r1", "least-squares", "divergence"), default="non-saturating",
                        help="divergence: that of an autoencoder, which has no other")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=2e-4, help="of losses: relative above 1, absolute below")
    parser.add_argument("--move-tolerance", type=float, default=0.05, help="of how far a tensor has moved, relative")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    channels, size, least = SHAPES[options.model[-2:]]
    cyclic = options.model.startswith("cyclegan")
    is_vae, classes = options.model.startswith("vae"), CLASSES if options.model.startswith("cgan") else 0
    generator = Generator(channels, size, least, CODE if is_vae else LATENT + classes)
    discriminator = Discriminator(channels + classes, size, least, 2 * CODE if is_vae else 1)
    if cyclic:
        generator, discriminator = Pair(("ab", "ba"), Translator, channels), Pair(("b", "a"), Judge, channels)
    if options.model.startswith("srgan"):
        generator, discriminator = Named("up", Restorer(channels)), Named("d", Judge(channels))
    if options.model.startswith("stylegan2"):
        generator, discriminator = style.Generator(channels, size, least), style.Discriminator(channels, size, least)
    if classes:
        generator, discriminator = Labelled(generator), Labelled(discriminator)
    draw(generator)
    draw(discriminator)
    labels = torch.randint(0, CLASSES, (3 * options.batch + 1,))
    images = torch.randint(0, 256, (3 * options.batch + 1, channels, size, size), dtype=torch.uint8)
    if cyclic:  # the second domain stands where the labels do: chosen with the images
        labels = torch.randint(0, 256, images.shape, dtype=torch.uint8)
    with tempfile.TemporaryDirectory() as folder:
        for part, domain in (("A", images), ("B", labels)) if cyclic else (("", images),):
            os.makedirs(os.path.join(folder, part), exist_ok=True)
            write_idx(os.path.join(folder, part, "train-images-idx3-ubyte"), domain)
        if not cyclic:
            write_labels(folder, labels)
        before, after = os.path.join(folder, "before.safetensors"), os.path.join(folder, "after.safetensors")
        initial = {name: value.clone() for name, value in tensors_of(options, generator, discriminator).items()}
        write_safetensors(before, initial)
        # On a machine with little of ours, bench/kernel_step takes the same options and prints the same.
        is_step = os.path.basename(options.program) == "kernel_step"
        of_program = ["--losses"] if is_step else ["train", "--format", "json", "--quiet", "--steps"]
        styled = options.model.startswith("stylegan2")
        optimizer = ["--lr", str(STYLE_RATE if styled else RATE), "--epsilon", str(STYLE_EPSILON if styled else EPSILON)]
        command = [options.program, *of_program, str(options.steps), "--model", options.model, "--dataset", folder, "--init", before,
                   "--batch", str(options.batch), *([] if is_vae else ["--d-steps", str(options.d_steps), "--loss", options.loss]), "--seed", str(options.seed), *optimizer, "--weights", after, "--backend", options.backend,
                   "--host-random", *(["--precision", "fp32"] if options.backend == "cuda" else [])]
        ours = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["history"]
        found = read_safetensors(after)
    theirs = (train_autoencoder if is_vae else train_cycles if cyclic else train)(options, generator, discriminator, images, labels)
    names = ("divergence", "reconstruction") if is_vae else ("discriminator", "generator")
    shown = {entry["step"]: (entry["discriminator"], entry["generator"]) for entry in ours}
    form = "divergence" if is_vae else f"{options.loss}, {options.d_steps} discriminator update(s) a step"
    print(f"{options.model}, batch {options.batch}, {form}\n"
          f"{'step':>5} {names[0]:>14} {'PyTorch':>12} {names[1]:>14} {'PyTorch':>12}")
    worst = 0.0
    for step in sorted(shown):
        pairs = list(zip(shown[step], theirs[step - 1]))
        worst = max([worst] + [abs(a - b) / max(abs(b), 1) for a, b in pairs])
        print(f"{step:>5} {pairs[0][0]:>14.6f} {pairs[0][1]:>12.6f} {pairs[1][0]:>14.6f} {pairs[1][1]:>12.6f}")
    expected = tensors_of(options, generator, discriminator)
    # Relative to how far a tensor has moved; numbers that hardly move are rounded in the digits of the weight.
    off = {name: ((found[name].reshape(value.shape) - value).norm() /
                  ((value - initial[name]).norm() + 1e-5 * initial[name].norm()).clamp_min(1e-9)).item() for name, value in expected.items()}
    name = max(off, key=off.get)
    good = worst <= options.tolerance and off[name] <= options.move_tolerance and len(found) == len(expected)
    print(f"losses at most {worst:.1e} off, expected {options.tolerance:.0e}; of a tensor's way at most {off[name]:.1e} ({name}), "
          f"expected {options.move_tolerance:.0e}: {'good' if good else 'BAD'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
