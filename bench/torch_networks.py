#!/usr/bin/env python3
"""Counts training steps of networks that others wrote, on fake tensors, against PyTorch's own counter and a CPU run.

For each network: the FLOPs of `ganymede.torch.workload` over those of torch.utils.flop_counter, where the weight gradients
of grouped convolutions are divided by their groups (PyTorch 2.15 counts them as if there were one group), its bytes over the most
that a step on this CPU allocates (by the events of PyTorch's profiler), without and with the buffers that the CPU's
convolutions take and give back themselves, its launches, and the seconds that counting took.
Networks come from packages of PyPI; a package that is missing leaves its networks out, and so does one that fails.

  pip install torch diffusers denoising-diffusion-pytorch lightweight-gan stylegan2-pytorch pytorch-pretrained-biggan \\
      torchgan torchvision timm transformers
  PYTHONPATH=python python3 bench/torch_networks.py [--only NAME] [--no-memory] [--threads 2]
"""
import argparse
import gc
import itertools
import sys
import time
import traceback
import warnings
from unittest import mock

import torch
from torch import nn

warnings.simplefilter("ignore")


def updated(model, loss):
    """A step that updates one network by Adam."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        optimizer.step()
    return {"network": model}, [optimizer], step


def adversarial(generator, discriminator, latents, real):
    """An alternating step of a GAN with the hinge-free loss of Wasserstein, the discriminator frozen for the generator."""
    of_g = torch.optim.Adam(generator.parameters(), 1e-4)
    of_d = torch.optim.Adam(discriminator.parameters(), 1e-4)

    def score(images):
        out = discriminator(images)
        while isinstance(out, (tuple, list)):
            out = out[0]
        return out.float().mean()

    def step():
        discriminator.requires_grad_(True)
        of_d.zero_grad(set_to_none=True)
        fake = generator(latents())
        (score(fake.detach()) - score(real)).backward()
        of_d.step()
        discriminator.requires_grad_(False)
        of_g.zero_grad(set_to_none=True)
        (-score(fake)).backward()
        of_g.step()
    return {"generator": generator, "discriminator": discriminator}, [of_g, of_d], step


def diffusers_unet():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=32, block_out_channels=(64, 128, 128), layers_per_block=2, norm_num_groups=8,
                        down_block_types=("DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
                        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D"))
    images = torch.rand(4, 3, 32, 32)
    return updated(model, lambda: model(images + torch.randn_like(images), 10).sample.square().mean())


def diffusers_ncsnpp():
    from diffusers import UNet2DModel
    model = UNet2DModel(sample_size=32, block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
                        time_embedding_type="fourier", down_block_types=("SkipDownBlock2D", "AttnSkipDownBlock2D"),
                        up_block_types=("AttnSkipUpBlock2D", "SkipUpBlock2D"))
    images = torch.rand(4, 3, 32, 32)
    return updated(model, lambda: model(images, torch.full((4,), 0.5)).sample.square().mean())


def diffusers_conditional():
    from diffusers import UNet2DConditionModel
    model = UNet2DConditionModel(sample_size=16, block_out_channels=(64, 128), layers_per_block=1, norm_num_groups=8,
                                 cross_attention_dim=64, attention_head_dim=8,
                                 down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                 up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
    images, text = torch.rand(4, 4, 16, 16), torch.rand(4, 16, 64)
    return updated(model, lambda: model(images, 5, text).sample.square().mean())


def diffusers_vae():
    from diffusers import AutoencoderKL
    model = AutoencoderKL(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
                          up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8)
    images = torch.rand(2, 3, 64, 64)
    return updated(model, lambda: (model(images).sample - images).square().mean())


def diffusers_vq():
    from diffusers import VQModel
    model = VQModel(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
                    up_block_types=("UpDecoderBlock2D",) * 2, norm_num_groups=8)
    images = torch.rand(2, 3, 32, 32)
    return updated(model, lambda: (model(images).sample - images).square().mean())


def diffusers_dit():
    from diffusers import DiTTransformer2DModel
    model = DiTTransformer2DModel(num_attention_heads=4, attention_head_dim=32, num_layers=4, sample_size=16)
    images, classes = torch.rand(4, 4, 16, 16), torch.ones(4, dtype=torch.long)
    return updated(model, lambda: model(images, timestep=torch.ones(4, dtype=torch.long),
                                        class_labels=classes).sample.square().mean())


def diffusers_pixart():
    from diffusers import PixArtTransformer2DModel
    model = PixArtTransformer2DModel(num_attention_heads=4, attention_head_dim=16, num_layers=3, sample_size=16,
                                     cross_attention_dim=64, caption_channels=32, use_additional_conditions=False)
    images, text = torch.rand(4, 4, 16, 16), torch.rand(4, 12, 32)
    return updated(model, lambda: model(images, encoder_hidden_states=text, timestep=torch.ones(4, dtype=torch.long),
                                        added_cond_kwargs={"resolution": None, "aspect_ratio": None}
                                        ).sample.square().mean())


def diffusers_sd3():
    from diffusers import SD3Transformer2DModel
    model = SD3Transformer2DModel(sample_size=16, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=16,
                                  num_attention_heads=4, joint_attention_dim=64, caption_projection_dim=64,
                                  pooled_projection_dim=64, out_channels=4)
    images, text, pooled = torch.rand(4, 4, 16, 16), torch.rand(4, 12, 64), torch.rand(4, 64)
    return updated(model, lambda: model(images, text, pooled, torch.ones(4, dtype=torch.long)).sample.square().mean())


def diffusers_video():
    from diffusers import UNet3DConditionModel
    model = UNet3DConditionModel(sample_size=16, block_out_channels=(32, 64), layers_per_block=1, norm_num_groups=8,
                                 cross_attention_dim=32, attention_head_dim=8,
                                 down_block_types=("CrossAttnDownBlock3D", "DownBlock3D"),
                                 up_block_types=("UpBlock3D", "CrossAttnUpBlock3D"))
    frames, text = torch.rand(2, 4, 4, 16, 16), torch.rand(2, 8, 32)
    return updated(model, lambda: model(frames, 5, text).sample.square().mean())


def denoising_diffusion(dim=32):
    from denoising_diffusion_pytorch import GaussianDiffusion, Unet
    model = Unet(dim=dim, dim_mults=(1, 2, 4), flash_attn=False)
    diffusion = GaussianDiffusion(model, image_size=32, timesteps=100)
    images, noise, times = torch.rand(4, 3, 32, 32), torch.randn(4, 3, 32, 32), torch.full((4,), 7)
    return updated(model, lambda: (model(diffusion.q_sample(images, times, noise), times) - noise).square().mean())


def denoising_diffusion_1d():
    from denoising_diffusion_pytorch import Unet1D
    model = Unet1D(dim=32, dim_mults=(1, 2, 4), channels=8)
    rows, times = torch.rand(4, 8, 64), torch.full((4,), 7)
    return updated(model, lambda: model(rows, times).square().mean())


def karras_unet():
    from denoising_diffusion_pytorch.karras_unet import KarrasUnet
    model = KarrasUnet(image_size=32, dim=32, dim_max=64, num_downsamples=2, num_blocks_per_stage=1, attn_res=(8,))
    images, times = torch.rand(4, 4, 32, 32), torch.rand(4)
    return updated(model, lambda: model(images, times).square().mean())


def lightweight_gan():
    with mock.patch("torch.cuda.is_available", return_value=True):  # which the package demands when it is imported
        from lightweight_gan.lightweight_gan import Discriminator, Generator
    generator = Generator(image_size=64, latent_dim=64, fmap_max=64, attn_res_layers=[])
    return adversarial(generator, Discriminator(image_size=64, fmap_max=64, disc_output_size=1, attn_res_layers=[]),
                       lambda: torch.randn(4, 64), torch.rand(4, 3, 64, 64))


def stylegan2():
    with mock.patch("torch.cuda.is_available", return_value=True):  # which the package demands when it is imported
        from stylegan2_pytorch.stylegan2_pytorch import Discriminator, Generator
    generator = Generator(64, 64, network_capacity=4)
    discriminator = Discriminator(64, network_capacity=4)
    noise = torch.rand(4, 64, 64, 1)

    class Styled(nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = generator

        def forward(self, latents):
            return self.generator(latents, noise)
    layers = generator.num_layers
    return adversarial(Styled(), discriminator, lambda: torch.randn(4, layers, 64), torch.rand(4, 3, 64, 64))


def biggan():
    from pytorch_pretrained_biggan import BigGAN, BigGANConfig
    config = BigGANConfig(output_dim=128, z_dim=32, class_embed_dim=32, channel_width=16, num_classes=10,
                          layers=[(False, 16, 16), (True, 16, 16), (True, 16, 8), (True, 8, 4), (True, 4, 2), (True, 2, 1)],
                          attention_layer_position=3)
    model = BigGAN(config)
    latents, classes = torch.randn(4, 32), torch.eye(10)[:4]
    return updated(model, lambda: model(latents, classes, 0.5).square().mean())


def torchgan_dcgan():
    from torchgan.models import DCGANDiscriminator, DCGANGenerator
    return adversarial(DCGANGenerator(64, 64, step_channels=32), DCGANDiscriminator(64, step_channels=32),
                       lambda: torch.randn(4, 64), torch.rand(4, 3, 64, 64))


def torchgan_sagan_like():
    from torchgan.layers import SelfAttention2d, SpectralNorm2d
    from torchgan.models import DCGANGenerator
    critic = nn.Sequential(SpectralNorm2d(nn.Conv2d(3, 32, 4, 2, 1)), nn.LeakyReLU(0.1), SelfAttention2d(32),
                           SpectralNorm2d(nn.Conv2d(32, 64, 4, 2, 1)), nn.LeakyReLU(0.1), nn.Flatten(),
                           nn.Linear(64 * 64, 1))
    return adversarial(DCGANGenerator(32, 32, step_channels=16), critic, lambda: torch.randn(4, 32),
                       torch.rand(4, 3, 32, 32))


def torchgan_autoencoder():
    from torchgan.models import AutoEncodingDiscriminator, DCGANGenerator
    return adversarial(DCGANGenerator(32, 32, step_channels=16), AutoEncodingDiscriminator(32, 3, 32, 16),
                       lambda: torch.randn(4, 32), torch.rand(4, 3, 32, 32))


def torchgan_auxiliary():
    from torchgan.models import ACGANDiscriminator, ACGANGenerator
    classes = torch.zeros(4, dtype=torch.long)
    generator = ACGANGenerator(10, 32, 32, step_channels=16)

    class Classes(nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = generator

        def forward(self, latents):
            return self.generator(latents, classes)

    class Source(nn.Module):
        def __init__(self):
            super().__init__()
            self.discriminator = ACGANDiscriminator(10, 32, 3, step_channels=16)

        def forward(self, images):
            return self.discriminator(images, mode="discriminator")
    return adversarial(Classes(), Source(), lambda: torch.randn(4, 32), torch.rand(4, 3, 32, 32))


def timm_resnet():
    import timm
    model = timm.create_model("resnet18", num_classes=1)
    images = torch.rand(4, 3, 64, 64)
    return updated(model, lambda: model(images).mean())


def timm_vit():
    import timm
    model = timm.create_model("vit_tiny_patch16_224", num_classes=1, img_size=64)
    images = torch.rand(4, 3, 64, 64)
    return updated(model, lambda: model(images).mean())


NETWORKS = [diffusers_unet, diffusers_ncsnpp, diffusers_conditional, diffusers_vae, diffusers_vq, diffusers_dit,
            diffusers_pixart, diffusers_sd3, diffusers_video, denoising_diffusion, denoising_diffusion_1d, karras_unet,
            lightweight_gan, stylegan2, biggan, torchgan_dcgan, torchgan_sagan_like, torchgan_autoencoder,
            torchgan_auxiliary, timm_resnet, timm_vit]


class Nowhere:
    """In place of the tracker of modules of PyTorch's counter, which fails on some networks."""
    parents = {"Global"}

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        pass


def backward_flops(slope, image, weight, *more, out_shape=None, **unused):
    """PyTorch's count of a convolution's backward pass, whose weight gradients forget that groups divide the work."""
    from torch.utils.flop_counter import conv_backward_flop
    groups, wanted = more[-2], more[-1]
    parts = [conv_backward_flop(slope, image, weight, *more[:-1], mask, out_val=out_shape)
             for mask in ([wanted[0], False, False], [False, wanted[1], False])]
    return parts[0] + parts[1] // groups


def pytorchs_flops(step):
    from torch.utils.flop_counter import FlopCounterMode
    counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten.convolution_backward: backward_flops})
    counter.mod_tracker = Nowhere()
    with counter:
        step()
    return counter.get_total_flops()


CONVOLUTIONS = ("aten::convolution", "aten::convolution_backward")


def without_buffers(memory, convolutions):
    """The events of memory without what a convolution takes and gives back itself: the CPU's oneDNN copies images and
    slopes into a layout of its own, which no GPU does, up to three tensors of a layer at once."""
    out, at = [], 0
    for begin, end in sorted(convolutions):
        while at < len(memory) and memory[at][0] < begin:
            out.append(memory[at])
            at += 1
        within = []
        while at < len(memory) and memory[at][0] <= end:
            size = memory[at][1]
            taken = next((one for one in reversed(within) if one[1] == -size), None) if size < 0 else None
            if taken is None:
                within.append(memory[at])
            else:
                within.remove(taken)
            at += 1
        out += within
    return out + memory[at:]


def allocated(models, optimizers, step):
    """The most bytes that live in a step, with and without buffers of the CPU's convolutions: by the profiler's events,
    beside what lives before it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        for _ in range(2):  # the profiler does not see that the first step frees what was there before
            step()
    found = profile.profiler.kineto_results.events()
    events = sorted(((one.start_ns(), one.nbytes()) for one in found if one.name() == "[memory]"),
                    key=lambda event: event[0])
    convolutions = [(one.start_ns(), one.start_ns() + one.duration_ns()) for one in found if one.name() in CONVOLUTIONS]
    most = [max(itertools.accumulate(size for _, size in of)) for of in (events, without_buffers(events, convolutions))]
    kept = [one for model in models.values() for one in [*model.parameters(), *model.buffers()]]
    kept += [value for optimizer in optimizers for state in optimizer.state.values() for value in state.values()
             if isinstance(value, torch.Tensor)]
    always = sum(one.numel() * one.element_size() for one in kept)
    return [one + always for one in most]


def row_of(make, memory):
    from ganymede.torch import workload
    torch.manual_seed(1)
    models, optimizers, step = make()
    begin = time.perf_counter()
    counted = workload(step, device=None, models=models, output=None)
    took = time.perf_counter() - begin
    step()
    flops = counted.flops / pytorchs_flops(step)
    of_all, bytes_ = ([sum(counted.memory_bytes.values()) / one for one in allocated(models, optimizers, step)] if memory
                      else [float("nan")] * 2)
    parameters = sum(one["parameters"] for one in counted.trace["networks"].values())
    return (f"{make.__name__:24} {parameters / 1e6:8.2f} {counted.flops / 1e9:9.2f} {flops:9.4f} {bytes_:9.3f} {of_all:9.3f} "
            f"{counted.launches:9.0f} {took:7.1f}", abs(flops - 1) <= 0.01, not memory or abs(bytes_ - 1) <= 0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="a network of the list")
    parser.add_argument("--no-memory", action="store_true", help="without the profiler's run")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{'network':24} {'M param':>8} {'GFLOP':>9} {'to torch':>9} {'to CPU':>9} {'buffers':>9} {'launches':>9} {'seconds':>7}")
    good = [0, 0, 0]
    for make in NETWORKS:
        if options.only and make.__name__ != options.only:
            continue
        try:
            row, flops, memory = row_of(make, not options.no_memory)
            good = [good[0] + 1, good[1] + flops, good[2] + memory]
            print(row, flush=True)
        except Exception as error:  # a package that is missing, or that this PyTorch does not suit
            print(f"{make.__name__:24} left out: {type(error).__name__}: {str(error).splitlines()[0][:90]}", flush=True)
            if options.only:
                traceback.print_exc()
        gc.collect()
    print(f"{good[0]} networks: FLOPs within 1 % of PyTorch's counter on {good[1]}, memory within 10 % of a CPU run on "
          f"{good[2]}")
    return 0 if good[0] and good[1] == good[0] == good[2] else 1


if __name__ == "__main__":
    sys.exit(main())
