"""The log of a run from Python, and the run beside its plan."""
import json
import os
import pathlib
import tempfile
import time
import unittest
import warnings

import ganymede
from support import request


class Watch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = ganymede.plan(request())

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = os.path.join(self.folder.name, "run.jsonl")

    def lines(self):
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def test_a_run_to_its_end(self):
        with ganymede.RunLog(self.log, steps=20, batch=64, every=0) as log:
            for step in range(20):
                time.sleep(0.005)
                log.step(step + 1, generator=1.5, discriminator=float("nan"))
                if step == 9:
                    with log.pause("evaluation"):
                        time.sleep(0.05)
                    now = ganymede.watch(self.plan, self.log)
        self.assertEqual((now.state, now.steps_done, now.steps), ("running", 10, 20))
        self.assertGreaterEqual(now.document["paused_s"], 0.05)
        self.assertGreater(now.step_seconds, 0.004)  # of the steps to come, by the trend of those so far
        self.assertLess(now.seconds_low, now.seconds_high)
        over = ganymede.watch(self.plan, self.log)
        self.assertEqual((over.state, over.steps_done), ("finished", 20))
        self.assertEqual(over.seconds, over.elapsed_seconds)
        self.assertEqual(self.lines()[1]["losses"], {"generator": 1.5, "discriminator": None})
        kept = os.path.join(self.folder.name, "forecast.json")
        pathlib.Path(kept).write_text(json.dumps(over.document))
        self.assertEqual(ganymede.load(kept), over)

    def test_a_loss_is_read_without_its_gradient(self):
        class Tensor:
            """As of PyTorch 2, which warns when a tensor is converted that has the history of a gradient."""

            def __init__(self, requires_grad):
                self.requires_grad = requires_grad

            def detach(self):
                return Tensor(False)

            def __float__(self):
                if self.requires_grad:
                    warnings.warn("Converting a tensor with requires_grad=True to a scalar")
                return 1.5

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with ganymede.RunLog(self.log, steps=1, batch=64) as log:
                log.step(1, generator=Tensor(True), discriminator=2)
        self.assertEqual(self.lines()[1]["losses"], {"generator": 1.5, "discriminator": 2.0})

    def test_an_exception_stops_it_and_it_goes_on(self):
        with self.assertRaises(ZeroDivisionError):
            with ganymede.RunLog(self.log, steps=20, batch=64, every=0) as log:
                log.step(5)
                raise ZeroDivisionError
        self.assertEqual(self.lines()[-1]["end"], "stopped")
        with ganymede.RunLog(self.log, steps=20, batch=64, first_step=4, every=0) as log:
            log.step(20)
        now = ganymede.watch(self.plan, self.log)
        self.assertEqual((now.state, now.document["resumptions"], now.steps_done), ("finished", 1, 20))

    def test_steps_are_written_once_in_a_while(self):
        with ganymede.RunLog(self.log, steps=1000, batch=64, every=3600) as log:
            for step in range(1000):
                log.step(step + 1)
        self.assertEqual(len(self.lines()), 3)

    def test_bad_input(self):
        for bad in ({"steps": 0, "batch": 1}, {"steps": 5, "batch": 0}, {"steps": 5, "batch": 1, "first_step": 6}):
            with self.assertRaises(ValueError):
                ganymede.RunLog(self.log, **bad)
        with self.assertRaises(ganymede.InputError) as caught:
            ganymede.watch(self.plan, os.path.join(self.folder.name, "none.jsonl"))
        self.assertIn("none.jsonl", str(caught.exception))
        with ganymede.RunLog(self.log, steps=5, batch=1, model="another"):
            pass
        with self.assertRaises(ganymede.InputError) as caught:
            ganymede.watch(self.plan, self.log)
        self.assertIn("another", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
