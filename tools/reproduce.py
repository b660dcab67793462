#!/usr/bin/env python3
"""Reproduces a paper: trains what its study lists, runs its sweeps and scenarios, and writes a page that compares.

  tools/reproduce.sh PAPER [--data DIR] [--full] [--output DIR] [--program build/release/bin/ganymede]

PAPER is a folder of studies/, or the path of a folder like them. The trainings are those of its study.json, by our own
kernel and in a short form; --full trains as many steps as the paper did. DIR holds the data that the paper used: the files of
MNIST (IDX) or CIFAR-10 (binary) themselves, or folders mnist and cifar-10 that do. Without them the images that the program
draws itself stand in, and the page says so. A training of several processes needs mpirun; without it the recorded result
stays, and the page says so.

The folder of --output (build/reproduced/PAPER) then has comparison.html, validation.json, the study with the new results, and
what each training, sweep and scenario printed, with pictures. The exit code is that of `ganymede validate`: 1 if a claim does
not come out as the study expects, 4 if a promise is broken. --record writes the results into studies/PAPER/study.json.
"""
import argparse
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = {"mnist": ("train-images-idx3-ubyte", "train-images.idx3-ubyte"), "cifar-10": ("data_batch_1.bin",)}
KEPT = ("model", "dataset", "device", "processes", "batch", "steps", "losses", "quality")  # the rest differs by machine


def text_of(value, indent=0, lead=0):
    """JSON as the studies have it: on one line what fits."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or (indent and lead + len(line) <= 158):
        return line
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        items = [f"{pad}{json.dumps(key, ensure_ascii=False)}: " +
                 text_of(item, indent + 2, len(pad) + len(json.dumps(key)) + 2) for key, item in value.items()]
    else:
        items = [pad + text_of(item, indent + 2, len(pad)) for item in value]
    ends = "{}" if isinstance(value, dict) else "[]"
    return ends[0] + "\n" + ",\n".join(items) + "\n" + " " * indent + ends[1]


def write(path, text):
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def folder_of(data, name):
    """The folder with the data set's files; none if it is not there."""
    for folder in (os.path.join(data, name), data) if data else ():
        if any(os.path.exists(os.path.join(folder, file)) for file in FILES.get(name, ())):
            return folder
    return None


def read_study(path):
    """The study of a file, or the sentence that says why it is none."""
    try:
        with open(path, encoding="utf-8") as file:
            study = json.load(file)
    except (OSError, ValueError) as error:
        return None, str(error)
    if not isinstance(study, dict) or study.get("schema") != "ganymede.validation/1":
        return None, 'expected "schema": "ganymede.validation/1"'
    for key, kind, what in (("name", str, "a text"), ("title", str, "a text"), ("assumptions", list, "a list")):
        if not isinstance(study.get(key), kind):
            return None, f"/{key}: expected {what}"
    trainings = study.get("trainings", {})
    if not isinstance(trainings, dict):
        return None, "/trainings: expected an object"
    for name, training in trainings.items():
        place = f"/trainings/{name}"
        if not isinstance(training, dict) or not isinstance(training.get("command"), str):
            return None, f"{place}: expected a command"
        try:
            words = shlex.split(training["command"])
        except ValueError as error:
            return None, f"{place}/command: {error}"
        steps = words[words.index("--steps") + 1:][:1] if "--steps" in words else []
        if "ganymede" not in words or not steps or not steps[0].isdecimal():
            return None, f"{place}/command: expected ganymede and --steps with a number in it"
        if training.get("dataset", "mnist") not in FILES:
            return None, f"{place}/dataset: expected {' or '.join(FILES)}"
        if type(training.get("full_steps", 1)) is not int:
            return None, f"{place}/full_steps: expected an integer"
        if not isinstance(training.get("data"), str):
            return None, f"{place}/data: expected a text"
    return study, ""


def run(command, **more):
    print("  " + shlex.join(command), flush=True)
    return subprocess.run(command, check=False, **more).returncode


def command_of(training, options, stem):
    """The training's command here, and what it trains on."""
    words = shlex.split(training["command"])
    words[words.index("ganymede")] = options.program
    if options.full and "full_steps" in training:
        words[words.index("--steps") + 1] = str(training["full_steps"])
    steps = int(words[words.index("--steps") + 1])
    form = f"{steps:,} steps of {training['full_steps']:,}" if steps < training.get("full_steps", 0) else f"{steps:,} steps"
    folder = folder_of(options.data, training.get("dataset", ""))
    if folder:
        words += ["--dataset", folder]
    data = training["dataset"] if folder else "built-in glyphs" + (
        f" in place of {training['dataset']}" if "dataset" in training else "")
    return words + ["--format", "json", "--samples", stem + ".png", "--metrics", stem + ".jsonl",
                    "-o", stem + ".json"], f"{data}: {form}"


def train(study, options):
    """Replaces the results of the study's trainings, and returns what was trained on what."""
    remarks = []
    for name, training in study.get("trainings", {}).items():
        stem = os.path.join(options.output, "training " + name).replace(" ", "-").replace(",", "")
        command, data = command_of(training, options, stem)
        if command[0] == "mpirun":
            if not shutil.which("mpirun"):
                remarks.append(f"{name}: there is no mpirun; recorded before: {training['data']}")
                continue
            command[1:1] = ["--oversubscribe"]
        # As root Open MPI wants to be told twice; in a container one often is.
        environment = {**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if run(command, env=environment):
            sys.exit(f"tools/reproduce.py: the training {name} failed")
        with open(stem + ".json", encoding="utf-8") as file:
            result = json.load(file)
        training["result"] = {key: result[key] for key in KEPT if key in result}
        if result.get("quality"):  # the last, without the names of the features
            training["result"]["quality"] = {key.split("[")[0]: value for key, value in result["quality"][-1].items()}
        training["data"] = data
        remarks.append(f"{name}: {data}")
    return remarks


def simulate(folder, options):
    """The sweeps and scenarios beside the study."""
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.json"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for schema, verb in (("ganymede.study/1", "sweep"), ("ganymede.scenario/1", "simulate")):
            if f'"schema": "{schema}"' in text and '"ganymede.validation/1"' not in text:
                name = os.path.splitext(os.path.basename(path))[0]
                out = os.path.join(options.output, f"{verb}-{name}")
                if run([options.program, verb, path, "--quiet", "--format", "json", "-o", out + ".json"]):
                    sys.exit(f"tools/reproduce.py: {path} failed")
                run([options.program, "report", out + ".json", "-o", out + ".html"])


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def main():
    papers = sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(ROOT, "studies/*/study.json")))
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                    prog="tools/reproduce.sh", epilog="papers: " + ", ".join(papers))
    parser.add_argument("paper", metavar="PAPER")
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--output", metavar="DIR")
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/bin/ganymede"))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    folder = os.path.join(ROOT, "studies", options.paper) if options.paper in papers else options.paper
    if not os.path.exists(os.path.join(folder, "study.json")):
        parser.error(f"found {options.paper}, expected a folder with a study.json, or one of {', '.join(papers)}")
    if options.data and not os.path.isdir(options.data):
        parser.error(f"--data: {options.data}: there is no such folder")
    if not os.path.exists(options.program):
        parser.error(f"--program: {options.program}: is not there; ./quickstart builds it")
    if not os.path.isfile(options.program) or not os.access(options.program, os.X_OK):
        parser.error(f"--program: {options.program}: is no program")
    path = os.path.join(folder, "study.json")
    study, wrong = read_study(path)
    if study is None:
        parser.error(f"{path}: {wrong}")
    wanted = {training["dataset"] for training in study.get("trainings", {}).values() if "dataset" in training}
    if options.data and not any(folder_of(options.data, name) for name in wanted):
        parser.error(f"--data: {options.data}: found none of the files of " +
                     (", ".join(f"{name} ({FILES[name][0]})" for name in sorted(wanted)) or "a data set that this paper's "
                      "study trains on, because it trains on none"))
    options.output = options.output or os.path.join(ROOT, "build/reproduced", study["name"])
    try:
        os.makedirs(options.output, exist_ok=True)
    except OSError as error:
        parser.error(f"--output: {options.output}: {error.strerror}")
    remarks = train(study, options)
    simulate(folder, options)
    if options.record:
        write(path, text_of(study) + "\n")
    study["assumptions"] = [{"what": "trained here: " + remark, "source": "tools/reproduce.sh"} for remark in remarks] + \
        study["assumptions"]
    on = sorted({remark.split(": ")[1] for remark in remarks})
    study["title"] += f"; trained anew on {', '.join(on)}" if on else "; it lists no training"
    own = os.path.join(options.output, "study.json")
    write(own, text_of(study) + "\n")
    result = os.path.join(options.output, "validation.json")
    code = run([options.program, "validate", own, "--format", "json", "-o", result])
    if os.path.exists(result) and code in (0, 1, 4):
        run([options.program, "validate", own])
        run([options.program, "report", result, "-o", os.path.join(options.output, "comparison.html")])
        print(f"{os.path.join(options.output, 'comparison.html')}: the paper's figures beside ours")
    sys.exit(code)


if __name__ == "__main__":
    main()
