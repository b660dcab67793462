#!/usr/bin/env python3
"""What tools/reproduce.sh makes of a small paper, whose training takes two steps."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

SOURCES = pathlib.Path(__file__).resolve().parent.parent.parent
STUDY = {
    "schema": "ganymede.validation/1", "name": "small", "title": "A small paper", "source": "nobody", "assumptions": [],
    "trainings": {"one": {"command": "ganymede train --model mlp-gan --batch 4 --steps 2", "full_steps": 3, "dataset": "mnist",
                          "data": "never", "result": {"losses": {"generator": 1000}}}},
    "run_error": 0.5,
    "cells": [{"what": "a loss", "unit": "loss", "quantity": "quality", "run": "one", "value": "/losses/generator", "measured": 0.7,
               "role": "predict"}],
    "claims": [{"text": "the discriminator loses more", "value": "/losses/discriminator", "falls": ["one", "two"], "expected": "holds"}],
}


class Reproduce(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.out = pathlib.Path(folder.name), pathlib.Path(folder.name) / "out"
        study = json.loads(json.dumps(STUDY))
        study["trainings"]["two"] = {"command": "ganymede train --model mlp-gan --batch 4 --steps 1", "data": "never", "result": {}}
        self.write(study)

    def write(self, study):
        (self.folder / "study.json").write_text(json.dumps(study))

    def reproduce(self, *arguments, code=0, program=os.environ["GANYMEDE"], **more):
        done = subprocess.run([SOURCES / "tools/reproduce.sh", *map(str, arguments), "--program", program],
                              capture_output=True, text=True, check=False, **more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def losses(self, name):
        return json.loads((self.out / f"training-{name}.json").read_text())["losses"]

    def test_the_page_has_the_papers_figures_beside_those_of_a_new_training(self):
        before = (self.folder / "study.json").read_text()
        study = json.loads(before)  # of a step more the loss is another; which way it goes decides the exit code
        self.reproduce(self.folder, "--output", self.out, code=self.code_of(study))
        cell, = json.loads((self.out / "validation.json").read_text())["studies"][0]["cells"]
        self.assertEqual(cell["predicted"], self.losses("one")["generator"])
        self.assertNotEqual(cell["predicted"], 1000)
        page = (self.out / "comparison.html").read_text()
        for text in ("trained anew on built-in glyphs, built-in glyphs in place of mnist", "built-in glyphs in place of mnist: 2 steps of 3", "a loss", f"{cell['predicted']:.4g}", "0.7",
                     "the discriminator loses more"):
            self.assertIn(text, page)
        self.assertTrue((self.out / "training-one.png").read_bytes().startswith(b"\x89PNG"))
        self.assertEqual((self.folder / "study.json").read_text(), before)

    def code_of(self, study):
        """0 if the claim comes out as the study expects, by trainings of the test's own."""
        losses = []
        for training in study["trainings"].values():
            words = training["command"].split()[1:]
            done = subprocess.run([os.environ["GANYMEDE"], *words, "--format", "json", "--quiet"], capture_output=True, text=True,
                                  check=True)
            losses.append(json.loads(done.stdout)["losses"]["discriminator"])
        return 0 if losses[0] > losses[1] * (1 + 5e-4) else 1

    def test_the_papers_data_and_all_of_its_steps(self):
        data = self.folder / "data/mnist"
        data.mkdir(parents=True)
        (data / "train-images-idx3-ubyte").write_bytes(struct.pack(">iiii", 2051, 8, 28, 28) + bytes(range(196)) * 32)
        study = json.loads((self.folder / "study.json").read_text())
        del study["claims"]
        self.write(study)
        self.reproduce(self.folder, "--output", self.out, "--data", self.folder / "data", "--full", "--record")
        study = json.loads((self.folder / "study.json").read_text())
        self.assertEqual(study["trainings"]["one"]["data"], "mnist: 3 steps")
        self.assertEqual((study["trainings"]["one"]["result"]["steps"], study["trainings"]["two"]["result"]["steps"]), (3, 1))
        self.assertEqual(study["trainings"]["one"]["result"]["losses"], self.losses("one"))
        self.assertEqual(study["title"], "A small paper")

    def test_what_is_wrong_is_named(self):
        self.assertIn("multi_gpu_mirrored_2023", self.reproduce("no-such-paper", code=2))
        self.assertIn("there is no such folder", self.reproduce(self.folder, "--data", self.folder / "none", code=2))
        self.assertIn("found none of the files of mnist", self.reproduce(self.folder, "--data", self.folder, code=2))
        self.assertFalse(self.out.exists())

    def test_mistakes_are_one_line(self):
        def refused(expected, *arguments, **more):
            said = self.reproduce(self.folder, "--output", self.out, *arguments, code=2, **more)
            self.assertIn(expected, said)
            self.assertEqual(len(said.splitlines()), 1, said)

        refused("is no program", program=str(self.folder))
        (self.folder / "taken").write_text("")
        refused("--output: ", "--output", self.folder / "taken")
        for text, expected in (("{", "study.json: Expecting"), ("[]", "study.json: expected \"schema\""), ("{}", "expected \"schema\"")):
            (self.folder / "study.json").write_text(text)
            refused(expected)
        for key, value, expected in (("command", "train --steps 2", "/trainings/one/command: expected ganymede"),
                                     ("command", "ganymede train --steps", "/trainings/one/command: expected ganymede"),
                                     ("command", "ganymede 'train --steps 2", "/trainings/one/command: No closing quotation"),
                                     ("full_steps", "many", "/trainings/one/full_steps: expected an integer"),
                                     ("dataset", "imagenet", "/trainings/one/dataset: expected mnist or cifar-10")):
            study = json.loads(json.dumps(STUDY))
            study["trainings"]["one"][key] = value
            self.write(study)
            refused(expected)
        self.assertFalse(self.out.exists())

    def test_mpirun_may_run_as_root(self):
        bin_folder = self.folder / "bin"
        bin_folder.mkdir()
        (bin_folder / "mpirun").write_text("#!/bin/sh\n[ \"$OMPI_ALLOW_RUN_AS_ROOT$OMPI_ALLOW_RUN_AS_ROOT_CONFIRM\" = 11 ] || exit 1\n"
                                           "while [ \"$1\" != -n ]; do shift; done\nshift 2\nexec \"$@\"\n")
        (bin_folder / "mpirun").chmod(0o755)
        study = json.loads((self.folder / "study.json").read_text())
        study["trainings"]["two"]["command"] = "mpirun -n 1 " + study["trainings"]["two"]["command"]
        self.write(study)
        self.reproduce(self.folder, "--output", self.out, code=self.code_of(json.loads(json.dumps(STUDY | {"trainings": {
            "one": STUDY["trainings"]["one"], "two": {"command": "ganymede train --model mlp-gan --batch 4 --steps 1"}}}))),
                       env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"})
        self.assertTrue((self.out / "training-two.json").exists())


if __name__ == "__main__":
    unittest.main()
