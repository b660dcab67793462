"""Recorded traces: against this project's own kernel, against what a loop does, and wrong input."""
import contextlib
import math
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from torch_support import Gan, Small, nn, phases, program, torch

import ganymede.torch
from ganymede.torch import RecordError, record


def recorded(small, run, steps=6, **more):
    with record(models=small.models, batch=2, output=None, **more) as r:
        for i in range(steps):
            run(i)
            r.step()
    return r


class AgainstTheKernel(unittest.TestCase):
    """The same network, trained by the same step, has the same work in PyTorch as in this project's own kernel."""

    @classmethod
    def setUpClass(cls):
        gan = Gan(2)
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = str(Path(cls.folder.name) / "trace.json")
        with record(models=gan.models, batch=2, output=cls.file, model="dcgan-64") as cls.r:
            for _ in range(4):
                gan.step()
                cls.r.step()
        cls.kernel = program("train", "--model", "dcgan-64", "--batch", "2", "--describe")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_parameters_and_flops_are_equal(self):
        networks = self.r.trace["networks"]
        self.assertEqual({name: one["parameters"] for name, one in networks.items()}, self.kernel["parameters"])
        flops = sum(phase["flops"] for phase in phases(self.r.trace).values())
        self.assertEqual(flops, self.kernel["flops_per_step"])
        self.assertEqual(sum(2 * one["flops_per_image"] for one in networks.values()), flops)

    def test_parts_have_the_shares_of_the_kernels_phases(self):
        """Where PyTorch takes gradients of real and generated images in passes of their own, so does the kernel."""
        def shares(kernels):
            found = {}
            for one in kernels:
                if one["kind"].startswith("convolution"):
                    places = [(size + 2 * pad - window) // stride + 1 for size, pad, window, stride in zip(
                        one["in"][1:], one.get("padding", [0, 0]), one["window"], one.get("stride", [1, 1]))]
                    work = math.prod([one["in"][0], one["out"], *one["window"], *places])
                    found[one["phase"]] = found.get(one["phase"], 0) + work
            return [work / sum(found.values()) for work in found.values()]

        self.assertEqual(shares(self.r.trace["kernels"]), shares(self.kernel["kernels"]))

    def test_names_say_whose_step_it_is(self):
        self.assertEqual(list(phases(self.r.trace)), [
            "prepare", "discriminator.forward", "discriminator.backward", "generator.forward", "discriminator.forward.2",
            "discriminator.backward.2", "discriminator.update", "generator.forward_through_discriminator",
            "generator.backward_through_discriminator", "generator.backward", "generator.update"])
        self.assertEqual(phases(self.r.trace)["generator.backward_through_discriminator"]["network"], "generator")

    def test_buckets_hold_all_gradients_in_order(self):
        entry = self.r.trace["batches"][0]
        for name, network in self.r.trace["networks"].items():
            buckets = [one for one in entry["buckets"] if one["network"] == name]
            self.assertEqual(sum(one["bytes"] for one in buckets), network["gradient_bytes"])
            self.assertEqual(network["gradient_bytes"], 4 * network["parameters"])
            self.assertEqual({one["before_phase"] for one in buckets}, {f"{name}.update"})
            fractions = [one["ready_fraction"] for one in buckets]
            self.assertEqual(fractions, sorted(fractions))
        # Like those of DistributedDataParallel: the first is closed at 1 MiB, no other one is full.
        self.assertEqual(len(entry["buckets"]), 4)
        self.assertEqual(entry["buckets"][0]["after_phase"], "discriminator.backward.2")

    def test_memory_and_steps(self):
        entry = self.r.trace["batches"][0]
        self.assertEqual(len(entry["wall_s"]), 2)
        self.assertEqual(entry["warmup_steps_dropped"], 2)
        self.assertEqual(entry["memory_bytes"]["parameters"], 4 * (2765568 + 3576704))
        self.assertGreaterEqual(entry["memory_bytes"]["optimizer"], 2 * entry["memory_bytes"]["parameters"])
        for at, wall in enumerate(entry["wall_s"]):
            self.assertLess(abs(sum(phase["seconds"][at] for phase in entry["phases"]) - wall), 1e-6)

    def test_the_program_prices_it(self):
        plan = program("plan", "--trace", self.file, "--images", "1000000", "--deadline", "100h", "--budget", "500USD",
                       "--gpu", "A100-40GB", "--max-gpus", "2", "--seeds", "1", "--market", "on-demand")
        self.assertIn("kernel model", plan["steps"][0]["how"])
        self.assertIsNotNone(plan["chosen"])


class Loops(unittest.TestCase):
    def test_recording_changes_no_number_and_leaves_no_hook(self):
        def losses(recording):
            gan, found = Gan(2, 4), []
            if not recording:
                return [gan.step() for _ in range(4)]
            with record(models=gan.models, batch=2, output=None) as r:
                for _ in range(4):
                    found.append(gan.step())
                    r.step()
            for module in [*gan.generator.modules(), *gan.discriminator.modules()]:
                self.assertFalse(module._forward_hooks or module._forward_pre_hooks)
            return found

        before = torch.autograd.backward, torch.autograd.grad
        self.assertEqual(losses(True), losses(False))
        self.assertEqual((torch.autograd.backward, torch.autograd.grad), before)

    def test_recording_ends_by_itself(self):
        small = Small()
        with record(models=small.models, batch=2, output=None, steps=5) as r:
            for _ in range(20):
                small.step()
                r.step()
        self.assertEqual(len(r.trace["batches"][0]["wall_s"]), 5 - 1)

    def test_what_recording_costs_is_said(self):
        def notes(plain):
            small = Small()
            with record(models=small.models, batch=2, output=None, steps=60) as r:
                begin = r._marks.begin
                with mock.patch.object(r._marks, "begin", lambda part: (time.sleep(0.001), begin(part))):
                    for _ in range(70 + plain):
                        small.step()
                        r.step()
            return [note for note in r.notes if "while it was recorded" in note]
        self.assertEqual(len(notes(60)), 1)
        self.assertEqual(len(notes(10)), 0)  # too few to tell

    def test_parts_of_some_steps_count_with_their_share(self):
        small = Small()

        def run(i):
            small.update_discriminator()
            if i % 2 == 1:
                small.update_generator()
        r = recorded(small, run, 18)
        update = phases(r.trace)["generator.update"]
        self.assertIn(0.0, update["seconds"])
        share = sum(1 for one in update["seconds"] if one > 0) / len(update["seconds"])
        times = [kernel["times"] for kernel in r.trace["kernels"] if kernel["phase"] == "generator.update"]
        self.assertTrue(all(abs(one % share) < 1e-9 or abs(one % share - share) < 1e-9 for one in times), times)
        self.assertTrue(any("generator is updated in" in note for note in r.notes), r.notes)
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/trace.json"
            ganymede.torch._trace.write(r.trace, file)
            self.assertTrue(program("kernels", "--gpu", "A100-40GB", "--model", file, "--batch", "2")["kernels"])

    def test_a_penalty_of_gradients_has_a_part_of_its_own(self):
        small = Small()

        def run(i):
            small.of_discriminator.zero_grad()
            real = torch.ones(2, 8, requires_grad=True)
            out = small.discriminator(real).sum()
            gradient, = torch.autograd.grad(out, real, create_graph=True)
            (out + gradient.square().sum()).backward()
            small.of_discriminator.step()
        names = list(phases(recorded(small, run).trace))
        self.assertEqual(names, ["prepare", "discriminator.forward", "discriminator.gradient", "discriminator.backward",
                                 "discriminator.update"])

    def test_several_updates_of_a_network_have_buckets_of_their_own(self):
        small = Small()

        def run(i):
            small.update_discriminator()
            small.update_discriminator()
            small.update_generator()
        buckets = recorded(small, run).trace["batches"][0]["buckets"]
        self.assertEqual([one["before_phase"] for one in buckets],
                         ["discriminator.update", "discriminator.update.2", "generator.update"])
        self.assertEqual([one["after_phase"] for one in buckets],
                         ["discriminator.backward", "discriminator.backward.2", "generator.backward"])


class Event:
    """An event of a stand-in of CUDA. A GPU that is half a step behind passes it later than the host records it."""
    behind_s = 0.0
    made = 0

    def __init__(self, enable_timing):
        Event.made += 1

    def record(self):
        self.when = time.perf_counter() + Event.behind_s

    def query(self):
        return time.perf_counter() >= self.when

    def elapsed_time(self, other):
        return 1e3 * (other.when - self.when)


class Cuda(unittest.TestCase):
    """The marks of a GPU, with a stand-in of CUDA's events: there is no GPU in these tests."""

    def run_behind(self, seconds):
        small, waits = Small(), []
        Event.behind_s = Event.made = 0
        device = {"name": "stand-in", "kind": "gpu", "fp32": "1e12flop/s", "memory_bandwidth": "1e11B/s"}

        def synchronize():
            waits.append(len(waits))
            time.sleep(Event.behind_s)
        cuda = {"Event": Event, "synchronize": synchronize, "reset_peak_memory_stats": lambda: None,
                "max_memory_allocated": lambda: 1 << 20}
        with contextlib.ExitStack() as stack:
            for name, value in cuda.items():
                stack.enter_context(mock.patch.object(torch.cuda, name, value))
            stack.enter_context(mock.patch.object(ganymede.torch._record._device, "measured", lambda *_: device))
            r = record(models=small.models, batch=2, output=None)
            r._kind = "cuda"
            with r:
                Event.behind_s = seconds
                for _ in range(12):
                    small.step()
                    r.step()
                within = len(waits)
        self.assertEqual(within, 1)  # before the first step
        return r.trace

    def test_nothing_waits_for_the_gpu_in_a_step(self):
        trace = self.run_behind(0.02)
        entry = trace["batches"][0]
        self.assertEqual(len(entry["wall_s"]), 12 - 2 - 1)
        self.assertTrue(all(one == 0 for phase in entry["phases"] for one in phase["host_s"]))
        self.assertEqual(entry["memory_bytes"]["activations"] > 0, True)

    def test_a_gpu_that_waits_for_launches_has_host_time(self):
        entry = self.run_behind(0.0)["batches"][0]
        for phase in entry["phases"]:
            busy = (phase["bytes_read"] + phase["bytes_written"]) / 1e11 + phase["flops"] / 1e12
            for seconds, host in zip(phase["seconds"], phase["host_s"]):
                self.assertLessEqual(seconds - host, busy + 1e-8)

    def test_names_of_gpus_are_those_of_the_catalogs(self):
        from ganymede.torch._device import gpu_name
        for full, short in (("NVIDIA A100-SXM4-80GB", "A100-80GB"), ("NVIDIA A100-PCIE-40GB", "A100-40GB-PCIE"),
                            ("Tesla V100-SXM2-16GB", "V100"), ("Tesla T4", "T4"), ("NVIDIA H100 80GB HBM3", "H100"),
                            ("NVIDIA GeForce RTX 3090", "RTX3090"), ("NVIDIA GeForce RTX 2080 Ti", "RTX2080Ti"),
                            ("NVIDIA L4", "L4"), ("NVIDIA A10G", "A10G"), ("Tesla V100-PCIE-32GB", "V100-PCIE")):
            self.assertEqual(gpu_name(full), short)


@unittest.skipUnless(torch.distributed.is_available(), "this PyTorch has no torch.distributed")
class Distributed(unittest.TestCase):
    def test_buckets_are_those_of_the_reducer(self):
        # Weights of 1.2 MB each: the reducer closes its first bucket at 1 MiB, before the second weight.
        network = nn.Sequential(nn.Linear(512, 600), nn.ReLU(), nn.Linear(600, 512))
        optimizer = torch.optim.SGD(network.parameters(), 0.01)
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            try:
                model = nn.parallel.DistributedDataParallel(network)
                with record(models={"discriminator": model}, batch=2, output=None) as r:
                    for _ in range(8):
                        optimizer.zero_grad()
                        model(torch.ones(2, 512)).mean().backward()
                        optimizer.step()
                        r.step()
                facts = model._get_ddp_logging_data()
            finally:
                torch.distributed.destroy_process_group()
        sizes = [int(one) for one in facts["rebuilt_bucket_sizes"].split(",")]
        self.assertGreater(len(sizes), 1)
        self.assertEqual([one["bytes"] for one in r.trace["batches"][0]["buckets"]], sizes)


class WrongInput(unittest.TestCase):
    def fails(self, text, call):
        with self.assertRaises(RecordError) as caught:
            call()
        self.assertIn(text, str(caught.exception))

    def test_what_is_no_network(self):
        self.fails("expected a dictionary", lambda: record(models=Small().generator, batch=2))
        self.fails("names no network", lambda: record(models={}, batch=2))
        self.fails("models['a'] is a int", lambda: record(models={"a": 1}, batch=2))
        self.fails("has no parameters", lambda: record(models={"act": nn.ReLU()}, batch=2))
        same = nn.Linear(1, 1)
        self.fails("is the same module as", lambda: record(models={"a": same, "b": same}, batch=2))
        self.fails("batch=0, expected a whole number", lambda: record(models=Small().models, batch=0))

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_cuda_times_of_a_cpu(self):
        self.fails("asks for times of a GPU", lambda: record(models=Small().models, batch=2, device="cuda"))
        self.fails("expected \"cpu\" or \"cuda\"", lambda: record(models=Small().models, batch=2, device="tpu"))

    def test_frozen_networks(self):
        small = Small()
        small.generator.requires_grad_(False)
        r = recorded(small, lambda i: small.update_discriminator())
        self.assertTrue(any("all parameters of generator are frozen" in note for note in r.notes), r.notes)
        self.assertTrue(any("generator was never updated" in note for note in r.notes), r.notes)
        self.assertEqual(r.trace["networks"]["generator"]["parameters"], 0)
        self.assertFalse(any(one["network"] == "generator" for one in r.trace["batches"][0]["buckets"]))
        self.assertTrue(all(not one.requires_grad for one in small.generator.parameters()))

    def test_two_optimizers_of_one_network(self):
        small = Small()
        first, second = small.discriminator[0].parameters(), small.discriminator[2].parameters()
        optimizers = [torch.optim.SGD(first, 0.1), torch.optim.SGD(second, 0.1)]

        def run(i):
            small.discriminator(torch.ones(2, 8)).mean().backward()
            for one in optimizers:
                one.step()
                one.zero_grad()
        r = recorded(small, run)
        self.assertEqual([name for name in phases(r.trace) if "update" in name],
                         ["discriminator.update", "discriminator.update.2"])
        buckets = [one for one in r.trace["batches"][0]["buckets"] if one["network"] == "discriminator"]
        self.assertEqual(sum(one["bytes"] for one in buckets), r.trace["networks"]["discriminator"]["gradient_bytes"])

    def test_one_optimizer_of_two_networks_or_of_none(self):
        small = Small()
        both = torch.optim.SGD([*small.generator.parameters(), *small.discriminator.parameters()], 0.1)
        other = torch.optim.SGD(nn.Linear(1, 1).parameters(), 0.1)

        def run(i):
            small.discriminator(small.generator(torch.randn(2, 4))).mean().backward()
            both.step()
            other.step()
        notes = recorded(small, run).notes
        self.assertTrue(any("one optimizer updates discriminator and generator" in note for note in notes), notes)
        self.assertTrue(any("updates no parameter of the recorded networks" in note for note in notes), notes)

    def test_an_exception_in_a_step(self):
        small = Small()
        with self.assertRaises(ZeroDivisionError):
            with record(models=small.models, batch=2, output=None) as r:
                for i in range(8):
                    small.step()
                    if i == 6:
                        raise ZeroDivisionError
                    r.step()
        self.assertEqual(len(r.trace["batches"][0]["wall_s"]), 3)
        self.assertTrue(any("ended the recording within step 7" in note for note in r.notes), r.notes)
        self.assertFalse(small.generator._forward_hooks)
        small.step()  # nothing of the recording is left in its way

    def test_a_step_that_never_ends(self):
        small = Small()

        def no_step():
            with record(models=small.models, batch=2, output=None):
                small.step()
        self.fails("r.step() was never called", no_step)
        self.fails("record at least 3", lambda: recorded(small, lambda i: small.step(), 2))
        r = record(models=small.models, batch=2, output=None)
        self.fails("outside of the block", r.step)

    def test_a_file_that_cannot_be_written(self):
        small = Small()

        def run():
            with record(models=small.models, batch=2, output="/nowhere/trace.json") as r:
                for _ in range(4):
                    small.step()
                    r.step()
        self.fails("/nowhere/trace.json: the trace cannot be written", run)


if __name__ == "__main__":
    unittest.main()
