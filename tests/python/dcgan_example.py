"""A training script as people have it: DCGAN with a loader, two optimizers, and passes of real and generated images.

It knows nothing of ganymede; torch_script_test.py adds three lines to it.
"""
import argparse

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--images", type=int, default=256)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--workers", type=int, default=0)
options = parser.parse_args()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(3)

loader = DataLoader(TensorDataset(torch.rand(options.images, 3, 64, 64) * 2 - 1), batch_size=options.batch_size,
                    shuffle=True, num_workers=options.workers)


def initialize(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
        nn.init.zeros_(module.bias)


class Generator(nn.Module):
    def __init__(self, width):
        super().__init__()
        layers, channels = [], 100
        for next_channels, stride, padding in ((8 * width, 1, 0), (4 * width, 2, 1), (2 * width, 2, 1), (width, 2, 1)):
            layers += [nn.ConvTranspose2d(channels, next_channels, 4, stride, padding, bias=False),
                       nn.BatchNorm2d(next_channels), nn.ReLU(True)]
            channels = next_channels
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, latents):
        return self.main(latents)


class Discriminator(nn.Module):
    def __init__(self, width):
        super().__init__()
        layers, channels = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)], width
        for _ in range(3):
            layers += [nn.Conv2d(channels, 2 * channels, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * channels),
                       nn.LeakyReLU(0.2, inplace=True)]
            channels *= 2
        self.main = nn.Sequential(*layers, nn.Conv2d(channels, 1, 4, 1, 0, bias=False), nn.Sigmoid())

    def forward(self, images):
        return self.main(images).view(-1)


netG = Generator(options.width).to(device)
netG.apply(initialize)
netD = Discriminator(options.width).to(device)
netD.apply(initialize)
criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))

for epoch in range(options.epochs):
    for number, (images,) in enumerate(loader):
        # The discriminator learns from real images, then from generated ones.
        netD.zero_grad()
        images = images.to(device)
        labels = torch.full((images.size(0),), 1.0, device=device)
        loss_real = criterion(netD(images), labels)
        loss_real.backward()
        fake = netG(torch.randn(images.size(0), 100, 1, 1, device=device))
        loss_fake = criterion(netD(fake.detach()), labels.fill_(0.0))
        loss_fake.backward()
        optimizerD.step()
        # The generator learns through it.
        netG.zero_grad()
        loss_generator = criterion(netD(fake), labels.fill_(1.0))
        loss_generator.backward()
        optimizerG.step()
        print(f"[{epoch}][{number}] D {loss_real.item() + loss_fake.item():.4f} G {loss_generator.item():.4f}")
