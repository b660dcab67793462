"""The log that a recorded training writes as it goes on, and pauses in it."""
import json
import tempfile
import time
import unittest
import warnings
from pathlib import Path
from unittest import mock

from torch_support import Small, torch

import ganymede
from ganymede.torch import RecordError, record


class OnAGpu:
    """A loss that lies on a GPU; reading it would wait."""
    is_cuda = True

    def __float__(self):
        return 2.5


class Log(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log, self.trace = f"{folder.name}/run.jsonl", f"{folder.name}/trace.json"
        write_all = mock.patch.object(ganymede.RunLog.__init__, "__kwdefaults__",
                                      {**ganymede.RunLog.__init__.__kwdefaults__, "every": 0.0})
        write_all.start()
        self.addCleanup(write_all.stop)

    def lines(self):
        return [json.loads(line) for line in Path(self.log).read_text(encoding="utf-8").splitlines()]

    def run_steps(self, count=6, total=6, each=lambda r, step: r.step(), **more):
        small = Small()
        with record(models=small.models, batch=2, output=None, log=self.log, total_steps=total, **more) as r:
            for step in range(count):
                small.step()
                each(r, step)
        return r

    def test_a_training_is_followed_beside_the_plan_of_its_trace(self):
        small, states = Small(), []
        with record(models=small.models, batch=2, output=self.trace) as r:
            for _ in range(6):
                small.step()
                r.step()
        plan = ganymede.plan(trace=self.trace, images=40, deadline="10h", budget="100USD", gpu="T4", max_gpus=1,
                             market="on-demand", seeds=1)

        def each(r, step):
            time.sleep(0.002)
            r.step(generator=torch.tensor(1.5), discriminator=float(step))
            if step % 5 == 4:
                with r.pause("evaluation"):
                    time.sleep(0.02)
                states.append(ganymede.watch(plan, self.log))
        self.run_steps(20, 20, each)
        self.assertEqual([(now.state, now.steps_done) for now in states], [("running", done) for done in (5, 10, 15, 20)])
        self.assertGreaterEqual(states[-1].document["paused_s"], 4 * 0.02)
        over = ganymede.watch(plan, self.log)
        self.assertEqual((over.state, over.steps_done, over.steps), ("finished", 20, 20))
        head, first = self.lines()[:2]
        self.assertEqual((head["model"], head["batch"], head["gpus"]), ("sequential-sequential", 2, 1))
        self.assertEqual((first["step"], first["losses"]), (1, {"generator": 1.5, "discriminator": 0.0}))

    def test_the_log_goes_on_after_the_recorded_steps(self):
        r = self.run_steps(20, 20, steps=5)
        self.assertEqual(len(r.trace["batches"][0]["wall_s"]), 5 - 1)
        self.assertEqual([line["step"] for line in self.lines()[1:-1]], list(range(1, 21)))

    def test_a_run_that_stopped_goes_on(self):
        def stop(r, step):
            r.step()
            if step == 3:
                raise ZeroDivisionError
        with self.assertRaises(ZeroDivisionError):
            self.run_steps(6, 8, stop)
        self.assertEqual(self.lines()[-1]["end"], "stopped")
        self.run_steps(5, 8, first_step=3)
        heads = [line for line in self.lines() if "schema" in line]
        self.assertEqual([line["first_step"] for line in heads], [0, 3])
        self.assertEqual((self.lines()[-1]["end"], self.lines()[-1]["step"]), ("finished", 8))

    def test_pauses_are_not_in_the_trace(self):
        """Also not where work is counted: the same kernels as without. Steps that a pause interrupts are left out."""
        small, clock, passed_s = Small(), time.perf_counter, 0.0
        clocks = mock.patch("time.perf_counter", lambda: clock() + passed_s)
        clocks.start()
        self.addCleanup(clocks.stop)

        def evaluate(r):
            nonlocal passed_s
            with r.pause("evaluation"), torch.no_grad():
                small.discriminator(small.generator(torch.randn(64, 4)))
                passed_s += 1e6

        def run(between=(), within=()):
            with record(models=small.models, batch=2, output=None) as r:
                for step in range(12):
                    small.update_discriminator()
                    if step in within:
                        evaluate(r)
                    small.update_generator()
                    r.step()
                    if step in between:
                        evaluate(r)
            entry = r.trace["batches"][0]
            self.assertLess(max(entry["wall_s"]), 1e6)
            kernels = [{**kernel, "times": round(kernel.get("times", 1), 9)} for kernel in r.trace["kernels"]]
            return kernels, len(entry["wall_s"])
        kernels, steps = run()
        self.assertEqual(run(between=(0, 1, 6)), (kernels, steps))
        self.assertEqual(run(within=(1, 6)), (kernels, steps - 1))

    def test_losses_of_a_gpu_are_read_after_the_recording(self):
        self.run_steps(8, 8, lambda r, step: r.step(generator=OnAGpu(), discriminator=torch.tensor(0.5)), steps=4)
        losses = [line["losses"] for line in self.lines() if "losses" in line]
        self.assertEqual(losses[0], {"discriminator": 0.5})
        self.assertEqual(losses[-1], {"generator": 2.5, "discriminator": 0.5})

    def test_more_steps_than_were_said(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.run_steps(8, 6)
        self.assertEqual([str(one.message) for one in caught if "that was to have" in str(one.message)],
                         ["step 7 of a run that was to have 6: the log ends with that"])
        self.assertEqual((self.lines()[-2]["step"], self.lines()[-1]["step"]), (6, 6))

    def test_one_of_several_processes_writes_it(self):
        distributed = torch.distributed
        for rank, batch in ((1, None), (0, 8)):
            with mock.patch.multiple(distributed, is_available=lambda: True, is_initialized=lambda: True,
                                     get_rank=lambda: rank, get_world_size=lambda: 4):
                self.run_steps()
            self.assertEqual(Path(self.log).exists(), rank == 0)
        self.assertEqual((self.lines()[0]["batch"], self.lines()[0]["gpus"]), (batch, 4))

    def test_what_is_missing_or_wrong(self):
        models = Small().models
        for given, text in (({"log": self.log}, "log and total_steps belong together"),
                            ({"total_steps": 5}, "log and total_steps belong together"),
                            ({"log": self.log, "total_steps": 0}, "total_steps=0, expected a whole number"),
                            ({"log": self.log, "total_steps": 5, "first_step": 6}, "first_step=6, expected at most the 5"),
                            ({"log": self.log, "total_steps": 5, "first_step": -1}, "first_step=-1")):
            with self.assertRaises(RecordError) as caught:
                record(models=models, batch=2, **given)
            self.assertIn(text, str(caught.exception))
        r = record(models=models, batch=2)
        with self.assertRaises(RecordError) as caught, r.pause("evaluation"):
            pass
        self.assertIn("r.pause() was called outside", str(caught.exception))
        with self.assertRaises(OSError):
            self.log = "/nowhere/run.jsonl"
            with record(models=models, batch=2, log=self.log, total_steps=5):
                pass
        self.assertFalse(models["generator"]._forward_hooks)


if __name__ == "__main__":
    unittest.main()
