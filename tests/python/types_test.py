"""The types of the package, by mypy as python/pyproject.toml sets it."""
import importlib.metadata
import os
import subprocess
import sys
import unittest

from support import ROOT, need_tool

need_tool("mypy")
if int(importlib.metadata.version("mypy").split(".")[0]) < 2:
    raise unittest.SkipTest("Debian's mypy 1.0 finds errors where there are none; pip install mypy")


class Types(unittest.TestCase):
    def test_mypy_finds_no_error(self):
        done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=os.path.join(ROOT, "python"),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
