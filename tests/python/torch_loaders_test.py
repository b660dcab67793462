"""Recorded loops with a DataLoader: in this process, and with workers that fork, spawn, persist, or die."""
import json
import os
import tempfile
import unittest
import warnings
from pathlib import Path

from torch_support import Small, phases, torch

from ganymede.torch import record


class Rows(torch.utils.data.Dataset):
    def __init__(self, deadly=None):
        self.deadly = deadly  # the row that ends a worker which reads it

    def __len__(self):
        return 64

    def __getitem__(self, at):
        if at == self.deadly and torch.utils.data.get_worker_info() is not None:
            os._exit(3)
        return torch.full((8,), float(at))


class Loaders(unittest.TestCase):
    def load(self, epochs=1, **how):
        small = Small()
        with record(models=small.models, batch=2, output=None) as r:
            loader = torch.utils.data.DataLoader(Rows(), batch_size=8, **how)
            for _ in range(epochs):
                for real in loader:
                    small.step(real[:2])
                    r.step()
        parts = phases(r.trace)
        load = parts["load"]
        # The first step that ends a pass over the data and begins another is counted, those after it are recorded.
        steps = 8 * epochs - 2 - min(1, epochs - 1)
        self.assertEqual(len(load["seconds"]), steps - max(1, steps // 10))
        self.assertEqual(sum(1 for one in parts["load.2"]["seconds"] if one > 0) if epochs > 2 else 0, max(0, epochs - 2))
        self.assertEqual((load["stream"], load["launches"]), ("host", 0))
        self.assertTrue(all(one > 0 for one in load["seconds"]))
        self.assertNotIn("network", load)
        return r

    def test_loaders_in_this_process(self):
        self.load()

    def test_loaders_that_fork(self):
        self.load(num_workers=1, multiprocessing_context="fork")

    def test_loaders_that_spawn(self):
        self.load(num_workers=1, multiprocessing_context="spawn")

    def test_workers_of_several_passes(self):
        for how in ({"num_workers": 2}, {"num_workers": 2, "persistent_workers": True},
                    {"num_workers": 4, "persistent_workers": True}):
            with self.subTest(**how), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "This DataLoader will create")
                self.load(epochs=3, multiprocessing_context="fork", **how)
        self.load(epochs=2, num_workers=2, persistent_workers=True, multiprocessing_context="spawn")

    def test_a_worker_that_dies(self):
        small = Small()
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "run.jsonl"
            with self.assertRaises((RuntimeError, EOFError, OSError)):
                with record(models=small.models, batch=2, output=None, log=log, total_steps=8) as r:
                    for real in torch.utils.data.DataLoader(Rows(deadly=50), batch_size=8, num_workers=2,
                                                            multiprocessing_context="fork"):
                        small.step(real[:2])
                        r.step()
            self.assertEqual(json.loads(log.read_text().splitlines()[-1])["end"], "stopped")
        # The loader says so by a RuntimeError, in PyTorch 1.13 sometimes after the broken connection's own exception.
        self.assertTrue(any("ended the recording within step" in note for note in r.notes), r.notes)
        self.assertFalse(small.generator._forward_hooks)
        for real in torch.utils.data.DataLoader(Rows(), batch_size=8):  # is what it was before
            small.step(real[:2])


if __name__ == "__main__":
    unittest.main()
