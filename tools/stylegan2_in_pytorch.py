"""The networks of stylegan2-28 and stylegan2-32 in PyTorch, for check_against_pytorch.py.

A modulated convolution is the published one: a convolution with a group of filters of its own for each image.
"""
import math

import torch
import torch.nn.functional as F

LATENT, WIDTH, MAPPING, MAPPING_RATE = 64, 64, 4, 0.01
R1, PENALTY_EVERY, PATH_WEIGHT, PATH_EVERY, PATH_SHARE = 0.01, 16, 2.0, 4, 0.01


def channels_at(size):
    return min(64, 512 // size)


class Weights:
    """Arrays under ganymede's names, and the training's view of a network."""

    def __init__(self, colours, size, least):
        self.colours, self.size, self.least, self.arrays = colours, size, least, {}

    def draw(self, name, *shape, deviation=1.0, mean=0.0):
        self.arrays[name] = (mean + deviation * torch.randn(shape)).requires_grad_()

    def dense(self, name, *shape, deviation=1.0):
        self.draw(name + ".weight", *shape, deviation=deviation)
        self.draw(name + ".bias", shape[0], deviation=0.1)

    def equalized(self, name, x, gain=math.sqrt(2), slope=0.2, padding=0, rate=1.0):
        weight = self.arrays[name + ".weight"]
        scaled = weight * (rate * gain / math.sqrt(weight[0].numel()))
        y = F.conv2d(x, scaled, self.arrays[name + ".bias"], padding=padding)
        return y if slope == 1 else F.leaky_relu(y, slope)

    def parameters(self):
        return self.arrays.values()

    def state_dict(self):
        return self.arrays


class Generator(Weights):
    def __init__(self, colours, size, least):
        super().__init__(colours, size, least)
        for i in range(1, MAPPING + 1):
            self.dense(f"map{i}", WIDTH, LATENT, 1, 1, deviation=1 / MAPPING_RATE)
        self.draw("constant.weight", 1, channels_at(least), least, least)
        for at, names in self.sizes():
            for name, before in names:
                self.draw_modulated(name, channels_at(at), before, 3, 3)
                self.draw(name + ".bias.bias", channels_at(at), deviation=0.1)
            self.draw_modulated(f"rgb{at}", colours, channels_at(at), 1, 1)
            self.draw(f"rgb{at}.bias", colours, deviation=0.1)

    def draw_modulated(self, name, *shape):
        self.draw(name + ".weight", *shape)
        self.draw(name + ".style.weight", shape[1], WIDTH)
        self.draw(name + ".style.bias", shape[1], deviation=0.1, mean=1.0)

    def sizes(self):
        """Each size with the names of its convolutions and the channels that they take."""
        at = self.least
        while at <= self.size:
            first = [(f"conv{at}", channels_at(at))]
            yield at, first if at == self.least else [(f"conv{at}.1", channels_at(at // 2)), (f"conv{at}.2", channels_at(at))]
            at *= 2

    def modulated(self, name, x, w, demodulated=True):
        weight = self.arrays[name + ".weight"]
        outputs, inputs, kernel, _ = weight.shape
        style = w @ self.arrays[name + ".style.weight"].t() / math.sqrt(WIDTH) + self.arrays[name + ".style.bias"]
        filters = weight[None] * style[:, None, :, None, None] / math.sqrt(weight[0].numel())
        if demodulated:
            filters = filters * torch.rsqrt(filters.square().sum((2, 3, 4), keepdim=True) + 1e-8)
        batch, _, height, width = x.shape
        y = F.conv2d(x.reshape(1, -1, height, width), filters.reshape(-1, inputs, kernel, kernel), padding=kernel // 2, groups=batch)
        return y.reshape(batch, outputs, height, width)

    def biased(self, name, x, gain=1.0):
        return gain * x + self.arrays[name].reshape(1, -1, 1, 1)

    def __call__(self, z):
        w = z / torch.sqrt((z * z).mean(1, keepdim=True) + 1e-8)
        for i in range(1, MAPPING + 1):
            w = self.equalized(f"map{i}", w, rate=MAPPING_RATE)
        self.w = w.flatten(1)
        x, image = self.arrays["constant.weight"].expand(len(w), -1, -1, -1), None
        for at, names in self.sizes():
            if image is not None:
                x, image = (F.interpolate(t, scale_factor=2, mode="nearest") for t in (x, image))
            for name, _ in names:
                x = F.leaky_relu(self.biased(name + ".bias.bias", self.modulated(name, x, self.w), math.sqrt(2)), 0.2)
            colours = self.biased(f"rgb{at}.bias", self.modulated(f"rgb{at}", x, self.w, demodulated=False))
            image = colours if image is None else image + colours
        return image


class PathLength:
    """The regularisation of the generator's last images; it draws the random image y with `normals`."""

    def __init__(self):
        self.average = 0.0

    def __call__(self, generator, fake, normals):
        y = normals(fake[0].numel()).reshape(fake.shape) / fake.shape[-1]
        v, = torch.autograd.grad((fake * y).sum(), generator.w, create_graph=True)
        lengths = v.square().sum(1).sqrt()
        penalty = PATH_EVERY * PATH_WEIGHT * (lengths - self.average).square().mean()
        self.average += PATH_SHARE * (lengths.mean().item() - self.average)
        return penalty


class Discriminator(Weights):
    def __init__(self, colours, size, least):
        super().__init__(colours, size, least)
        self.dense("rgb", channels_at(size), colours, 1, 1)
        for at in self.sizes():
            now, after = channels_at(at), channels_at(at // 2)
            self.dense(f"conv{at}.1", now, now, 3, 3)
            self.dense(f"conv{at}.2", after, now, 3, 3)
            self.dense(f"skip{at}", after, now, 1, 1)
        last = channels_at(least)
        self.dense(f"conv{least}.1", last, last + 1, 3, 3)
        self.dense(f"conv{least}.2", last, last, least, least)
        self.dense("logit", 1, last, 1, 1)

    def sizes(self):
        at = self.size
        while at > self.least:
            yield at
            at //= 2

    def __call__(self, image):
        x, least = self.equalized("rgb", image), self.least
        for at in self.sizes():
            main = self.equalized(f"conv{at}.1", x, padding=1)
            main = F.avg_pool2d(self.equalized(f"conv{at}.2", main, gain=2, padding=1), 2)
            x = (main + self.equalized(f"skip{at}", F.avg_pool2d(x, 2), slope=1)) / 2
        deviation = torch.sqrt(((x - x.mean(0)) ** 2).mean(0) + 1e-8).mean()
        x = torch.cat([x, deviation.expand(x.shape[0], 1, least, least)], 1)
        x = self.equalized(f"conv{least}.2", self.equalized(f"conv{least}.1", x, padding=1))
        return self.equalized("logit", x, gain=1, slope=1).reshape(-1)
