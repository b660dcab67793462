"""What the tests of ganymede.torch share: PyTorch or a skip, the program, and small networks.

GANYMEDE_TORCH_PYTHON names an interpreter with another PyTorch, with which the same tests then run.
"""
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.setdefault("GANYMEDE", str(ROOT / "build/release/bin/ganymede"))
sys.path.insert(0, str(ROOT / "python"))

_other = os.environ.get("GANYMEDE_TORCH_PYTHON")
if _other and _other != sys.executable:  # not by where it leads: that of a virtual environment leads to the base
    os.environ["GANYMEDE_TORCH_PYTHON"] = ""
    os.execv(_other, [_other, *sys.argv])

try:
    import torch
except ImportError:
    print(f"skipped: {sys.executable} has no PyTorch (Debian: python3-torch)")
    sys.exit(77)
torch.set_num_threads(1)
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
WORKLOAD = unittest.skipIf(VERSION < (2, 1), f"PyTorch {torch.__version__} has no fake tensors that workload() can use")
nn = torch.nn


def program(*arguments, code=0):
    """What the program prints as JSON."""
    done = subprocess.run([PROGRAM, *arguments, "--format", "json"], capture_output=True, text=True)
    assert done.returncode == code, f"{arguments}: {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def dcgan(width=64):
    """DCGAN for images of 64 x 64, as kernel/models/dcgan.cpp has it; `width` channels next to the image."""
    sizes = [8 * width, 4 * width, 2 * width, width]
    layers = [nn.ConvTranspose2d(100, sizes[0], 4, 1, 0, bias=False), nn.BatchNorm2d(sizes[0]), nn.ReLU(True)]
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU(True)]
    generator = nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())
    sizes.reverse()
    layers = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(0.2, True)]
    return generator, nn.Sequential(*layers, nn.Conv2d(sizes[-1], 1, 4, 1, 0, bias=False), nn.Flatten())


class Gan:
    """A GAN with its optimizers and a step. The discriminator is frozen in the generator's update."""

    def __init__(self, batch, width=64):
        torch.manual_seed(1)
        self.batch = batch
        self.generator, self.discriminator = dcgan(width)
        self.of_generator = torch.optim.Adam(self.generator.parameters(), 2e-4, betas=(0.5, 0.999))
        self.of_discriminator = torch.optim.Adam(self.discriminator.parameters(), 2e-4, betas=(0.5, 0.999))
        self.loss = nn.BCEWithLogitsLoss()
        self.real = torch.rand(batch, 3, 64, 64)

    @property
    def models(self):
        return {"generator": self.generator, "discriminator": self.discriminator}

    def step(self):
        ones, zeros = torch.ones(self.batch, 1), torch.zeros(self.batch, 1)
        self.discriminator.requires_grad_(True)
        self.discriminator.zero_grad(set_to_none=True)
        self.loss(self.discriminator(self.real), ones).backward()
        fake = self.generator(torch.randn(self.batch, 100, 1, 1))
        loss = self.loss(self.discriminator(fake.detach()), zeros)
        loss.backward()
        self.of_discriminator.step()
        self.discriminator.requires_grad_(False)
        self.generator.zero_grad(set_to_none=True)
        self.loss(self.discriminator(fake), ones).backward()
        self.of_generator.step()
        return loss.item()


class Small:
    """Two tiny networks of products, for what does not depend on the networks."""

    def __init__(self):
        torch.manual_seed(1)
        self.generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
        self.discriminator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self.of_generator = torch.optim.SGD(self.generator.parameters(), 0.01)
        self.of_discriminator = torch.optim.SGD(self.discriminator.parameters(), 0.01)

    @property
    def models(self):
        return {"generator": self.generator, "discriminator": self.discriminator}

    def update_discriminator(self, real=None):
        self.of_discriminator.zero_grad()
        real = torch.ones(2, 8) if real is None else real
        fake = self.generator(torch.randn(2, 4)).detach()
        (self.discriminator(fake).mean() - self.discriminator(real).mean()).backward()
        self.of_discriminator.step()

    def update_generator(self):
        self.of_generator.zero_grad()
        self.discriminator(self.generator(torch.randn(2, 4))).mean().backward()
        self.of_generator.step()

    def step(self, real=None):
        self.update_discriminator(real)
        self.update_generator()


def phases(trace):
    return {phase["name"]: phase for phase in trace["batches"][0]["phases"]}
