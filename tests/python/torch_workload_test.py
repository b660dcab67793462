"""Steps counted on fake tensors: against PyTorch's own counter, the memory of a CPU run, and recorded steps."""
import copy
import unittest

from torch_support import WORKLOAD, Gan, Small, nn, phases, torch

from ganymede.torch import RecordError, record, workload


def counted_by_torch(step):
    from torch.utils.flop_counter import FlopCounterMode

    class Nowhere:
        """In place of the counter's tracker of modules, which cannot follow autograd.grad."""
        parents = {"Global"}

        def __enter__(self):
            return self

        def __exit__(self, *unused):
            pass

    counter = FlopCounterMode(display=False)
    counter.mod_tracker = Nowhere()
    with counter:
        step()
    return counter.get_total_flops()


def peak_on_the_cpu(step, tensors):
    """Bytes of `tensors` and the most that a step allocates beside them, by the events of PyTorch's profiler."""
    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        for _ in range(2):  # the profiler does not see that the first step frees what was there before
            step()
    events = [(one.start_ns(), one.nbytes()) for one in profile.profiler.kineto_results.events()
              if one.name() == "[memory]"]
    now = most = 0
    for _, size in sorted(events, key=lambda event: event[0]):
        now += size
        most = max(most, now)
    return most + sum(one.numel() * one.element_size() for one in tensors())


class Diffusion:
    """A network with attention that learns to remove noise, with everything that a step may have: two passes whose
    gradients are added up, mixed precision, clipping, and a mean of its weights."""

    def __init__(self, passes=2, half=True, dilation=2):
        torch.manual_seed(1)
        self.passes, self.half = passes, half
        self.network = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.SiLU(),
                                     nn.Conv2d(32, 32, 3, padding=dilation, dilation=dilation), nn.Flatten(2),
                                     nn.TransformerEncoderLayer(256, 4, 64, batch_first=True))
        self.mean = copy.deepcopy(self.network).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), 1e-4)
        self.images = torch.rand(8, 3, 16, 16)

    def step(self):
        self.optimizer.zero_grad()
        for images in self.images.chunk(self.passes):
            noise = torch.randn_like(images)
            with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
                out = self.network(images + noise)
            out.float().square().mean().backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimizer.step()
        with torch.no_grad():
            for kept, new in zip(self.mean.parameters(), self.network.parameters()):
                kept.lerp_(new, 0.001)


class Penalty(Gan):
    """The discriminator's update has a penalty of its gradients, which are differentiated twice."""

    def step(self):
        self.discriminator.zero_grad()
        real = self.real.clone().requires_grad_(True)
        out = self.discriminator(real).sum()
        gradient, = torch.autograd.grad(out, real, create_graph=True)
        (out + 10 * (gradient.flatten(1).norm(dim=1) - 1).square().mean()).backward()
        self.of_discriminator.step()


@WORKLOAD
class Counted(unittest.TestCase):
    def test_a_step_is_counted_as_a_recorded_one(self):
        gan = Gan(2, 4)
        counted = workload(gan.step, device=None, models=gan.models, batch=2, output=None)
        with record(models=gan.models, batch=2, output=None) as r:
            for _ in range(4):
                gan.step()
                r.step()
        self.assertEqual(counted.trace["networks"], r.trace["networks"])
        self.assertEqual(counted.trace["kernels"], r.trace["kernels"])
        for kind, size in r.trace["batches"][0]["memory_bytes"].items():
            self.assertLess(abs(counted.memory_bytes[kind] - size), 0.02 * sum(counted.memory_bytes.values()), kind)
        for name, phase in phases(r.trace).items():
            self.assertEqual(phases(counted.trace)[name]["flops"], phase["flops"], name)

    def test_flops_are_those_of_pytorchs_counter(self):
        for made in (Gan(2, 8), Diffusion(), Diffusion(1, False), Penalty(2, 8)):
            counted = workload(made.step, device=None, output=None)
            self.assertAlmostEqual(counted.flops / counted_by_torch(made.step), 1, delta=0.01, msg=type(made).__name__)

    def test_memory_is_what_a_cpu_run_allocates(self):
        """Without dilated convolutions, for which a CPU gathers their inputs, and a GPU does not."""
        for made, optimizers in ((Gan(16, 8), ("of_generator", "of_discriminator")),
                                 (Diffusion(1, False, 1), ("optimizer",))):
            counted = workload(made.step, device=None, output=None)

            def tensors():
                found = [one for value in vars(made).values() if isinstance(value, nn.Module)
                         for one in [*value.parameters(), *value.buffers()]]
                return found + [value for name in optimizers for state in getattr(made, name).state.values()
                                for value in state.values() if isinstance(value, torch.Tensor)]
            made.step()
            found = peak_on_the_cpu(made.step, tensors)
            self.assertAlmostEqual(sum(counted.memory_bytes.values()) / found, 1, delta=0.1, msg=type(made).__name__)

    def test_the_whole_step_is_counted(self):
        made = Diffusion()
        counted = workload(made.step, device=None, output=None)
        self.assertEqual(list(counted.trace["networks"]), ["network"])  # the mean is never updated by an optimizer
        self.assertEqual(counted.trace["precision"], "bf16")
        # Two passes of half the batch: their images do not grow to the whole one.
        first = [one for one in counted.trace["kernels"] if one["kind"] == "convolution"][0]
        self.assertEqual((first["batch"], first.get("grows")), (1, None))
        self.assertEqual(counted.trace["batches"][0]["batch"], 4)
        whole = workload(made.step, device=None, output=None, batch=8)
        first = [one for one in whole.trace["kernels"] if one["kind"] == "convolution"][0]
        self.assertEqual((first["batch"], first["grows"]), (4, "none"))
        self.assertEqual(whole.flops, counted.flops)
        names = list(phases(whole.trace))
        self.assertEqual([one for one in names if one != "prepare"], [
            "network.forward", "network.backward", "network.forward.2", "network.backward.2", "network.update"])
        lerps = [one for one in whole.trace["kernels"] if one.get("op") == "lerp" and one["phase"] == "network.update"]
        # One of AdamW over lists of tensors, and one for each parameter of the mean.
        count = len(list(made.network.parameters()))
        self.assertEqual(sum(one.get("times", 1) for one in lerps), 1 + count)

    def test_nothing_is_changed(self):
        made = Gan(2, 4)
        made.generator.register_parameter("scale", nn.Parameter(torch.tensor(2.0)))
        made.of_generator.add_param_group({"params": [made.generator.scale]})
        before = {name: value.clone() for name, value in made.generator.state_dict().items()}
        random = torch.get_rng_state()
        workload(made.step, device=None, output=None)
        self.assertTrue(torch.equal(torch.get_rng_state(), random))
        for name, value in made.generator.state_dict().items():
            self.assertIs(type(value), torch.Tensor)
            self.assertTrue(torch.equal(value, before[name]), name)
        self.assertTrue(all(one.grad is None for one in made.generator.parameters()))
        self.assertFalse(made.of_generator.state)
        made.step()  # still trains
        state = copy.deepcopy(made.of_generator.state_dict())
        workload(made.step, device=None, output=None)
        for one, other in zip(state["state"].values(), made.of_generator.state_dict()["state"].values()):
            self.assertEqual(float(one["step"]), float(other["step"]))

    def test_what_asks_for_cuda_is_counted_without_it(self):
        small = Small()

        def step():
            small.of_generator.zero_grad()
            with torch.autocast("cuda"):
                small.generator(torch.randn(2, 4, device="cuda")).float().mean().backward()
            small.of_generator.step()
        counted = workload(step, device=None, models={"generator": small.generator}, output=None)
        if not torch.cuda.is_available():
            self.assertTrue(any("asks for \"cuda\"" in note for note in counted.notes), counted.notes)
            self.assertEqual(counted.trace["precision"], "fp16")

    def test_a_gpu_gives_times(self):
        made = Gan(2, 4)
        counted = workload(made.step, "A100", models=made.models, output=None)
        self.assertEqual(counted.trace["device"]["name"], "A100-40GB by kernel model")
        low, high = counted.interval_s
        self.assertTrue(low < counted.seconds < high)
        self.assertAlmostEqual(counted.trace["batches"][0]["wall_s"][0], counted.seconds, places=9)
        self.assertIn("launches", str(counted))


@WORKLOAD
class WrongInput(unittest.TestCase):
    def fails(self, text, step, **more):
        with self.assertRaises(RecordError) as caught:
            workload(step, **{"device": None, "output": None, **more})
        self.assertIn(text, str(caught.exception))

    def test_steps_that_cannot_be_counted(self):
        small = Small()
        self.fails("expected a function", 1)
        self.fails("sees no torch.nn.Module", lambda: None)
        self.fails("updates none of the networks", lambda: small.generator(torch.ones(1, 4)), models=small.models)
        self.fails("depend on numbers", lambda: torch.ones(3).nonzero(), models=small.models)
        self.fails("fails on fake tensors with ZeroDivisionError", lambda: 1 / 0, models=small.models)
        self.fails("no such GPU", small.step, models=small.models, device="A101")
        self.fails("batch=0", small.step, models=small.models, batch=0)


class Lacking(unittest.TestCase):
    @unittest.skipIf(torch.__version__ >= "2", "this PyTorch has fake tensors")
    def test_an_old_version_says_so(self):
        with self.assertRaises(RecordError) as caught:
            workload(lambda: None)
        self.assertIn("needs PyTorch 2.1 or later", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
