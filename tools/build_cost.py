#!/usr/bin/env python3
"""Where the time of a build goes, from ninja's log: by folder, the longest steps, and what a change to a header costs.

    tools/build_cost.py                                   build/release, and the headers that most files include
    tools/build_cost.py --build build/asan --top 20
    tools/build_cost.py --header common/json.hpp sim/scenario/scenario.hpp

Each output counts with the last time for which it was built, so that a build of several runs is complete. The times are those for which a step
ran, by the clock. On a machine that does nothing else, with no more steps at a time than cores, they are processor seconds; compare builds of
the same machine and the same -j. With ccache a step that was found takes no time: export CCACHE_DISABLE=1 before what is to be measured.
Exit code: 0, or 2 if the input is wrong.
"""
import argparse
import collections
import dataclasses
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ["common/json.hpp", "common/errors.hpp", "common/units.hpp", "common/text.hpp", "common/random.hpp", "platforms/platform.hpp",
           "sim/scenario/scenario.hpp"]
COMPILED = (".o", ".gch")


class InputError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Step:
    output: str  # the first of those that it makes
    seconds: float

    @property
    def compiles(self):
        return self.output.endswith(COMPILED)


def read_log(text, name):
    """Returns the steps of a log. Outputs of the same step have its hash and its times."""
    lines = text.splitlines()
    version = re.fullmatch(r"# ninja log v(\d+)", lines[0]) if lines else None
    if not version or int(version[1]) < 5:
        raise InputError(f"{name}:1: found \"{lines[0] if lines else ''}\", expected \"# ninja log v5\" or later")
    last = {}
    for number, line in enumerate(lines[1:], 2):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 5 or not (fields[0].isdigit() and fields[1].isdigit() and int(fields[0]) <= int(fields[1])):
            raise InputError(f"{name}:{number}: found \"{line}\", expected start, end, time of change, output and hash between tabulators")
        start, end, _, output, command = fields
        last[output] = (int(start), int(end), command)
    steps = {}
    for output, step in last.items():
        if step not in steps or pathlib.PurePath(steps[step]).is_absolute():  # CMake names byproducts by their whole paths
            steps[step] = output
    return [Step(output, (end - start) / 1000) for (start, end, _), output in steps.items()]


def place_of(step):
    """The folder for which a step works: "sim/ledger", "tests/sim/ledger", or what else it does."""
    if step.output.startswith("bin/") or not step.compiles:
        return "links and the rest"
    if "ganymede_precompiled" in step.output:
        return "precompiled headers"
    return step.output.split("CMakeFiles/")[0].rstrip("/") or "."


def read_dependencies(text):
    """Reads what `ninja -t deps` prints: the files that each output was made of."""
    files, output = {}, None
    for line in text.splitlines():
        if line.startswith(" "):
            files[output].append(line.strip())
        elif ": #deps " in line:
            output = line.split(": #deps ")[0]
            files[output] = []
    return files


def rebuilt_by(header, steps, files):
    """The steps that a change to the header repeats."""
    return [step for step in steps if step.compiles and any(file.endswith("/" + header) for file in files.get(step.output, []))]


def table(rows):
    return "\n".join(f"{seconds:9.1f} s {100 * share:5.1f} %  {what}" for seconds, share, what in rows)


def report(steps, files, headers, top):
    total = sum(step.seconds for step in steps)
    compiled = [step for step in steps if step.compiles]
    compiling = sum(step.seconds for step in compiled)
    if total == 0 or compiling == 0:
        raise InputError("the log has no step that took time")
    by_place = collections.Counter()
    for step in steps:
        by_place[place_of(step)] += step.seconds
    tests = sum(seconds for place, seconds in by_place.items() if place.startswith("tests"))
    out = ["Times are those for which each step ran, by the clock: processor seconds if the machine did nothing else.", "",
           f"{total:9.1f} s          {len(steps)} steps, {len(compiled)} of which compile ({compiling:.1f} s); tests {100 * tests / total:.0f} %",
           "", "By folder:", table((seconds, seconds / total, place) for place, seconds in by_place.most_common()),
           "", "Longest steps:",
           table((step.seconds, step.seconds / total, step.output) for step in sorted(steps, key=lambda step: -step.seconds)[:top])]
    if headers:
        out += ["", "A change to a header compiles anew, of the time to compile:"]
        rows = []
        for header in headers:
            again = rebuilt_by(header, steps, files)
            seconds = sum(step.seconds for step in again)
            rows.append((seconds, seconds / compiling, f"{header} ({len(again)} of {len(compiled)} steps)"))
        out.append(table(sorted(rows, reverse=True)))
    return "\n".join(out)


def build_cost(options):
    build = pathlib.Path(options.build)
    log = build / ".ninja_log"
    if not log.is_file():
        raise InputError(f"{options.build} has no .ninja_log: expected a folder that ninja has built, such as build/release")
    for header in options.header:
        if not (ROOT / header).is_file():
            raise InputError(f"found no header \"{header}\", expected a file of the project such as common/json.hpp")
    steps = read_log(log.read_text(errors="replace"), f"{options.build}/.ninja_log")
    files = {}
    if options.header:
        try:
            answer = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True)
        except FileNotFoundError:
            raise InputError("found no ninja, which knows what includes a header: tools/install_packages.sh build") from None
        if answer.returncode != 0:
            raise InputError(f"ninja -C {options.build} -t deps: {answer.stderr.strip()}")
        files = read_dependencies(answer.stdout)
    print(report(steps, files, options.header, options.top))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/release", help="folder that ninja has built (default build/release)")
    parser.add_argument("--header", nargs="*", default=HEADERS, help="headers, as they are included")
    parser.add_argument("--top", type=int, default=10, help="so many of the longest steps (default 10)")
    options = parser.parse_args()
    if options.top < 0:
        parser.error(f"argument --top: found {options.top}, expected 0 or more")
    return options


if __name__ == "__main__":
    try:
        build_cost(arguments())
    except InputError as error:
        print(f"build_cost: {error}", file=sys.stderr)
        sys.exit(2)
