"""What the tests of the package share: inputs whose simulation takes a fraction of a second."""
import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PROGRAM = os.environ["GANYMEDE"]

DATASET = {"name": "mnist", "images": 60000, "bytes_per_image": 784}
WORKLOAD = {"trace": "recorded:mlp-gan-cpu", "dataset": DATASET, "batch_per_gpu": 64, "epochs": 20}


def need(*modules):
    """Skips the file unless these modules are installed."""
    for name in modules:
        if importlib.util.find_spec(name) is None:
            raise unittest.SkipTest(f"there is no {name} (tools/install_packages.sh python installs it)")


def need_tool(module, package=None):
    """Goes on in an interpreter that has the module, if this one has not: GANYMEDE_TOOLS_PYTHON names some, separated by
    colons, and ./test makes one. Skips the file if there is none."""
    if importlib.util.find_spec(module) is not None:
        return
    made = os.path.join(ROOT, "build", "python_tools", "bin", "python")
    for python in filter(os.path.exists, [*os.environ.get("GANYMEDE_TOOLS_PYTHON", "").split(":"), made]):
        probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        if subprocess.run([python, "-c", probe], check=False).returncode == 0:
            os.execv(python, [python, *sys.argv])
    raise unittest.SkipTest(f"there is no {module} (pip install {package or module}; GANYMEDE_TOOLS_PYTHON names "
                            "interpreters that have such tools)")


def program(*arguments, code=0):
    """Runs the program and returns what it printed."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}: {done.stderr}"
    return done.stdout


def scenario(**changes):
    return {
        "schema": "ganymede.scenario/1",
        "workload": WORKLOAD,
        "platform": {"catalog": "aws", "region": "us-east-1", "instance": "p3.8xlarge"},
        "synchronization": {"scheme": "ring"},
        "seed": 1,
        **changes,
    }


def study(**changes):
    return {
        "schema": "ganymede.study/1",
        "name": "tested",
        "workload": WORKLOAD,
        "platforms": [
            {"catalog": "aws", "region": "us-east-1", "gpu": "V100"},
            {"catalog": "gcp", "region": "us-central1", "gpu": "V100", "market": "spot"},
        ],
        "gpus": [1, 2, 4],
        "schemes": ["ring"],
        "seeds": [1, 2],
        **changes,
    }


def request(**changes):
    return {
        "schema": "ganymede.request/1",
        "workload": {"model": "dcgan-64", "batch_per_gpu": [64], "images": 1000000},
        "deadline": "60h",
        "budget": "500USD",
        "search": {"catalogs": ["aws"], "gpus": ["V100"], "regions": ["us-east-1"], "max_gpus": 4, "seeds": 2},
        "seed": 7,
        **changes,
    }


@contextlib.contextmanager
def working_folder():
    """An empty folder that is the working directory."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def write_program(path, script):
    """An executable shell script that stands in for the program."""
    with open(path, "w", encoding="utf-8") as out:
        out.write("#!/bin/sh\n" + script)
    os.chmod(path, 0o755)
    return path
