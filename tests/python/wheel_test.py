"""The package as it is installed: from the source, and as a wheel that carries the program."""
import glob
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

from support import PROGRAM, ROOT

CLEAN = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **{
    name: value for name, value in os.environ.items() if name.startswith(("PIP_", "http", "HTTP")) or name == "LD_LIBRARY_PATH"}}
FIND = "import ganymede.plot; print(ganymede.find_program())\n"
PLAN = FIND + """
plan = ganymede.plan(model="dcgan-64", images=100000, catalog="aws", gpu="V100", region="us-east-1", max_gpus=1,
                     market="on-demand", batch=64)
print(plan.chosen.instance)
"""


def run(*command, folder):
    return subprocess.run(command, cwd=folder, env=CLEAN, capture_output=True, text=True, check=False)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = cls.keep.name
        made = run(sys.executable, "-m", "venv", "env", folder=cls.folder)
        if made.returncode != 0:
            raise unittest.SkipTest("no virtual environment can be made (Debian: python3-venv)")
        cls.python = os.path.join(cls.folder, "env", "bin", "python")
        asked = run(cls.python, "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "10", "scikit-build-core>=0.10",
                    folder=cls.folder)
        if asked.returncode != 0:
            raise unittest.SkipTest("scikit-build-core cannot be had from PyPI")

    @classmethod
    def tearDownClass(cls):
        cls.keep.cleanup()

    def installed(self, script, *what):
        """What the script prints with this installed."""
        done = run(self.python, "-m", "pip", "install", "-q", "--no-compile", "--force-reinstall", "--no-deps", *what, folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(self.python, "-c", script, folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_a_wheel_carries_the_program(self):
        build = os.path.dirname(os.path.dirname(PROGRAM))
        script = os.path.join(ROOT, "tools", "build_wheel.sh")
        built = subprocess.run([script, "-o", self.folder, build], env={**CLEAN, "PYTHON": self.python},
                               capture_output=True, text=True, check=False)
        self.assertEqual(built.returncode, 0, built.stderr)
        wheels = glob.glob(os.path.join(self.folder, "ganymede-*-py3-none-linux_*.whl"))
        self.assertEqual(built.stdout.split(), wheels)
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = wheel.namelist()
        for name in ("__init__.py", "py.typed", "plot.py", "_carried/bin/ganymede", "_carried/share/doc/ganymede/copyright"):
            self.assertIn(f"ganymede/{name}", names)
        self.assertFalse([name for name in names if "__pycache__" in name])
        program, instance = self.installed(PLAN, wheels[0])
        self.assertTrue(program.endswith("site-packages/ganymede/_carried/bin/ganymede"), program)
        self.assertEqual(instance, "p3.2xlarge")

    def test_the_source_finds_the_checkouts_program(self):
        if not os.path.samefile(PROGRAM, os.path.join(ROOT, "build", "release", "bin", "ganymede")):
            self.skipTest("the program under test is not the checkout's release build")
        for options in (["--no-build-isolation"], ["--no-build-isolation", "--editable"]):
            (program,) = self.installed(FIND, *options, os.path.join(ROOT, "python"))
            self.assertTrue(os.path.samefile(program, PROGRAM), program)

    def test_what_is_missing_is_said(self):
        done = subprocess.run([os.path.join(ROOT, "tools", "build_wheel.sh"), self.folder], env=CLEAN, capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("build it first", done.stderr)


if __name__ == "__main__":
    unittest.main()
