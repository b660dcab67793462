"""From a script that was not written for it to a priced plan: three lines and one command."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from torch_support import ROOT, program

LINES = """import ganymede.torch
with ganymede.torch.record(models={"generator": netG, "discriminator": netD}, batch=options.batch_size) as r:
    r.step()
"""


def with_three_lines(script):
    """The script with LINES: its loop stands in the block, and r.step() is the last of it."""
    imports, block, step = LINES.splitlines()
    before, loop = script.split("\nfor epoch in", 1)
    loop = "".join(f"    {line}\n" for line in f"for epoch in{loop}".splitlines())
    return f"{imports}\n{before}\n{block}\n{loop}        {step}\n"


class Script(unittest.TestCase):
    def test_three_lines_and_one_command(self):
        script = (ROOT / "tests/python/dcgan_example.py").read_text(encoding="utf-8")
        self.assertNotIn("import ganymede", script)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.py"
            path.write_text(with_three_lines(script), encoding="utf-8")
            environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), OMP_NUM_THREADS="1")
            command = [sys.executable, str(path), "--batch-size", "4", "--images", "28", "--width", "8", "--workers", "1"]
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("[0]["), 7)  # the script still does what it did
            file = Path(folder) / "step-trace.json"
            trace = json.loads(file.read_text(encoding="utf-8"))
            plan = program("plan", "--trace", str(file), "--epochs", "25", "--dataset-images", "202599", "--deadline",
                           "48h", "--budget", "100USD", "--max-gpus", "2", "--seeds", "1", "--market", "on-demand",
                           "--gpu", "T4,A100-40GB")
        self.assertEqual(trace["model"], "generator-discriminator")
        self.assertEqual([phase["name"] for phase in trace["batches"][0]["phases"]][:3],
                         ["load", "prepare", "discriminator.forward"])
        self.assertIsNotNone(plan["chosen"])
        self.assertIn("kernel model", plan["steps"][0]["how"])

    def test_the_documentation_shows_these_lines(self):
        for page in ("docs/pytorch.md", "README.md"):
            text = (ROOT / page).read_text(encoding="utf-8")
            for line in LINES.replace("netG", "G").replace("netD", "D").replace("options.batch_size", "64").splitlines():
                self.assertIn(line.strip(), text, page)
            self.assertIn("ganymede plan --trace step-trace.json --epochs 25 --dataset-images 202599", text, page)


if __name__ == "__main__":
    unittest.main()
