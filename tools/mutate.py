#!/usr/bin/env python3
"""Do a folder's tests notice mistakes? Makes mutants of its .cpp files, runs the folder's own tests on each, and says which survive.

    tools/mutate.py sim/ledger                         40 mutants, drawn with seed 1
    tools/mutate.py platforms --set money              the files of a set, or --files 'pric*' 'money*'
    tools/mutate.py plan --set choices --filter='-*CloudPlans.*'
    tools/mutate.py sim/ledger --seed 2 --count 80     others, and more
    tools/mutate.py sim/ledger --list                  only lists the mutants that would be tried

A mutant is one place changed: an operator, a constant, a bound, a condition that always or never holds, a statement left out. It is killed by a
test that fails, by a crash, and by a program that takes ten times as long as without it. One that does not compile is not counted, nor is one
that `tools/mutants_equivalent.txt` lists with the reason why no test can see it. Survivors are printed as that file lists them.

The tree is only read. The folder's test program is brought up to date in --build; mutants are compiled, linked and run in --build/mutants by
the commands that `compile_commands.json` and ninja state for the original, so that a mutant costs one file and one link. The order in which
mutants are drawn depends on the seed and on their lines alone. Exit code: 0, 1 if the score is below --bar, 2 if the input is wrong.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import mutants as making

ROOT = pathlib.Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tools" / "mutants_equivalent.txt"
# What a run's answer hangs on first: what is paid, and what is chosen.
SETS = {
    ("platforms", "money"): ["money.cpp", "price_doubt.cpp", "price_list.cpp", "price_list_json.cpp", "read_prices.cpp"],
    ("plan", "choices"): ["answer.cpp", "break_even.cpp", "cheapest.cpp", "choice.cpp", "dearer_regions.cpp", "why.cpp"],
}
MEMORY = 8 << 30        # bytes of address space for a mutant that allocates without end
WRITTEN = 1 << 28       # bytes for a file that it writes without end
TIMES_AS_LONG = 10      # a mutant that takes as many times as long as the original has lost its way
SECONDS_MORE = 10


class InputError(Exception):
    pass


def run_to_end(command, log, cwd, seconds=None, env=None, before=None):
    """Runs a command in a session of its own, which a time-out or an interrupt ends whole. Returns its code, None for a time-out."""
    with open(log, "wb") as output:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True, preexec_fn=before)
    with RUNNING_LOCK:
        RUNNING.add(process)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end(process)
        with RUNNING_LOCK:
            RUNNING.discard(process)


RUNNING, RUNNING_LOCK = set(), threading.Lock()


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def limit_resources():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (WRITTEN, WRITTEN))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def without(words, *dropped):
    """Leaves out options, and the values of those that end with a space."""
    out, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word + " " in dropped:
            skip = True
        elif word not in dropped:
            out.append(word)
    return out


class Build:
    """How the build folder compiles a folder's library and links its tests."""

    def __init__(self, build, folder):
        name = folder.replace("/", "_")
        self.build, self.folder, self.test = build, folder, f"{name}_test"
        self.library = f"{folder}/libganymede_{name}.a"
        self.scratch = build / "mutants" / name
        self.scratch.mkdir(parents=True, exist_ok=True)
        log = self.scratch / "ninja.log"
        if run_to_end(["ninja", "-C", str(build), self.test], log, ROOT) != 0:
            raise InputError(f"{folder}: its test program does not build:\n{log.read_text(errors='replace')[-2000:]}")
        self.compile, self.sources = self.compile_command(f"/ganymede_{name}.dir/")
        self.link = self.link_command()

    def compile_command(self, target):
        entries = [entry for entry in json.loads((self.build / "compile_commands.json").read_text())
                   if target in entry["command"] and "cmake_pch" not in entry["file"]]
        sources, command = [], None
        for entry in entries:
            file = pathlib.Path(entry["file"])
            included = re.findall(r'^#include "(.*)"', file.read_text(), re.MULTILINE) if "/Unity/" in entry["file"] else [str(file)]
            sources += [pathlib.Path(path) for path in included]
            words = shlex.split(entry["command"])
            source = words.index(entry["file"])
            command = without(words[:source] + words[source + 1:], "-o ", "-c", "-Werror", "-MD", "-MT ", "-MF ") + ["-w"]
        if not command:
            raise InputError(f"{self.folder}: {self.build}/compile_commands.json compiles nothing of it")
        # Without optimisation a file takes half as long. The standard library's assertions see an index beyond the end.
        precompiled = command[command.index("-include") + 1] if "-include" in command else None
        command = without(command, "-include ", "-Winvalid-pch") + ["-O0", "-D_GLIBCXX_ASSERTIONS"]
        stamp = self.scratch / "command"
        if not stamp.exists() or stamp.read_text() != shlex.join(command):  # what was compiled by other options is of no use
            shutil.rmtree(self.scratch)
            self.scratch.mkdir()
            stamp.write_text(shlex.join(command))
        if precompiled:
            command += ["-include", self.precompile(command, pathlib.Path(precompiled))]
        return command, sources

    def precompile(self, command, headers):
        """Compiles the headers of other projects by these options, once for all mutants."""
        out = self.scratch / "headers.hxx"
        compiled = out.with_suffix(".hxx.gch")
        if not compiled.exists() or compiled.stat().st_mtime < headers.stat().st_mtime:
            out.write_text(headers.read_text())
            whole = out.with_suffix(".whole")
            if run_to_end(command + ["-x", "c++-header", str(out), "-o", str(whole)], out.with_suffix(".log"), self.build) != 0:
                raise InputError(f"{self.folder}: its headers do not compile: see {out.with_suffix('.log')}")
            whole.rename(compiled)
        return str(out)

    def link_command(self):
        commands = subprocess.run(["ninja", "-C", str(self.build), "-t", "commands", self.test], capture_output=True, text=True,
                                  check=True).stdout
        program = f"bin/{self.test}"
        for line in reversed(commands.splitlines()):
            for part in line.split(" && "):
                words = shlex.split(part)
                if "-o" in words and words[words.index("-o") + 1] == program and self.library in words:
                    mold = ["-fuse-ld=mold"] if shutil.which("mold") else []
                    return without(words, "-o ") + mold
        raise InputError(f"{self.folder}: ninja links no {program} with {self.library}")

    def compiled(self, source, out, log):
        """Compiles one file. False if it does not."""
        return run_to_end(self.compile + ["-c", str(source), "-o", str(out)], log, self.build) == 0

    def linked(self, objects, out, log):
        archive = out.with_suffix(".a")
        archive.unlink(missing_ok=True)
        if run_to_end(["ar", "rcsT", str(archive), *map(str, objects)], log, self.build) != 0:
            return False
        words = [str(archive) if word == self.library else word for word in self.link]
        return run_to_end(words + ["-o", str(out)], log, self.build) == 0


class Trial:
    """Runs the tests on the original and on mutants."""

    def __init__(self, build, chosen, options):
        self.build, self.options = build, options
        self.objects = {}
        originals = build.scratch / "original"
        originals.mkdir(exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for source, done in zip(build.sources, pool.map(self.compile_original, range(len(build.sources)))):
                if not done:
                    raise InputError(f"{source} does not compile by itself: see {originals}")
        self.objects = {source: self.objects[source] for source in build.sources}
        missing = [file for file in chosen if ROOT / file not in self.objects]
        if missing:
            raise InputError(f"{missing[0]} is no source of {build.library}")
        program, log = originals / "program", originals / "log"
        if not build.linked(self.objects.values(), program, log):
            raise InputError(f"{build.test} does not link: see {log}")
        start = time.monotonic()
        self.seconds = None
        if self.tested(program, originals) != 0:
            raise InputError(f"{build.test} fails without any mutant: see {originals / 'tests.log'}")
        if "[  PASSED  ] 0 tests" in (originals / "tests.log").read_text(errors="replace"):
            raise InputError(f"--filter '{options.filter}' matches no test of {build.test}")
        self.seconds = TIMES_AS_LONG * (time.monotonic() - start) + SECONDS_MORE

    def compile_original(self, index):
        source = self.build.sources[index]
        out = self.build.scratch / "original" / f"{index}_{source.stem}.o"
        self.objects[source] = out
        headers = max((path.stat().st_mtime for path in ROOT.rglob("*.hpp") if "build" not in path.parts), default=0)
        if out.exists() and out.stat().st_mtime > max(headers, source.stat().st_mtime):
            return True
        whole = out.with_suffix(".whole")  # an interrupt leaves no half of one behind
        if not self.build.compiled(source, whole, out.with_suffix(".log")):
            return False
        whole.rename(out)
        return True

    def tested(self, program, folder):
        scratch = folder / "tmp"
        scratch.mkdir(exist_ok=True)
        env = {**os.environ, "RC_PARAMS": "seed=1", "TMPDIR": str(scratch)}
        command = [str(program), "--gtest_brief=1", "--gtest_fail_fast", f"--gtest_filter={self.options.filter}"]
        return run_to_end(command, folder / "tests.log", scratch, self.seconds, env, limit_resources)

    def outcome_of(self, mutant):
        """Returns "killed", "survived" or "does not compile"."""
        folder = self.build.scratch / f"thread_{threading.get_ident()}"
        folder.mkdir(exist_ok=True)
        try:
            source = folder / pathlib.Path(mutant.file).name
            source.write_text(mutant.applied((ROOT / mutant.file).read_text()))
            out = folder / f"{source.stem}.o"
            if not self.build.compiled(source, out, folder / "compile.log"):
                return "does not compile"
            objects = [out if path == ROOT / mutant.file else other for path, other in self.objects.items()]
            if not self.build.linked(objects, folder / "program", folder / "link.log"):
                return "does not compile"
            return "survived" if self.tested(folder / "program", folder) == 0 else "killed"
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def chosen_files(options):
    folder = ROOT / options.folder
    if not folder.is_dir():
        raise InputError(f"found no folder \"{options.folder}\", expected one of the project such as sim/ledger")
    patterns = options.files or ["*"]
    if options.set:
        if (options.folder, options.set) not in SETS:
            known = ", ".join(f"{folder} --set {name}" for folder, name in SETS)
            raise InputError(f"{options.folder} has no set \"{options.set}\", expected one of: {known}")
        patterns = SETS[options.folder, options.set]
    names = sorted(path.name for path in folder.glob("*.cpp"))
    for pattern in patterns:
        if not fnmatch.filter(names, pattern) and not fnmatch.filter(names, pattern + ".cpp"):
            raise InputError(f"{options.folder}: no .cpp file is \"{pattern}\", expected some of: {', '.join(names)}")
    return [f"{options.folder}/{name}" for name in names
            if any(fnmatch.fnmatch(name, pattern) or fnmatch.fnmatch(name, pattern + ".cpp") for pattern in patterns)]


def drawn_mutants(files, options):
    """The mutants in the order in which they are tried, and how many were left out as equivalent."""
    known = making.read_equivalent(EQUIVALENT.read_text(), "tools/mutants_equivalent.txt") if EQUIVALENT.exists() else {}
    everything = [mutant for file in files for mutant in making.make_mutants(file, (ROOT / file).read_text())]
    identities = {mutant.identity for mutant in everything}
    for file, before, _ in known.keys() - identities:
        if file in files:
            print(f"{EQUIVALENT.name}: {file} has no such mutant any more: {before}", file=sys.stderr)
    counted = [mutant for mutant in everything if mutant.identity not in known]
    return making.drawn(counted, options.seed), len(everything) - len(counted)


def tried(trial, drawn, options):
    """Yields mutants and outcomes in their order until --count have compiled."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        try:
            waiting, next_one, counted = [], 0, 0
            while counted < options.count:
                while next_one < len(drawn) and len(waiting) < options.jobs:
                    waiting.append((drawn[next_one], pool.submit(trial.outcome_of, drawn[next_one])))
                    next_one += 1
                if not waiting:
                    return
                mutant, future = waiting.pop(0)
                outcome = future.result()
                counted += outcome != "does not compile"
                yield mutant, outcome
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            with RUNNING_LOCK:
                for process in RUNNING:
                    end(process)


def mutate(options):
    files = chosen_files(options)
    drawn, equivalent = drawn_mutants(files, options)
    print(f"{options.folder}: {len(drawn)} mutants of {len(files)} files, {equivalent} more are known to be equivalent; seed {options.seed}")
    if options.list:
        for mutant in drawn[:options.count]:
            print(f"{mutant.file}:{mutant.line}\n- {mutant.before}\n+ {mutant.after}")
        return 0
    build = pathlib.Path(options.build)
    build = build if build.is_absolute() else ROOT / build
    if not (build / "compile_commands.json").exists():
        raise InputError(f"{options.build} is no build folder; cmake --preset release makes build/release")
    trial = Trial(Build(build.resolve(), options.folder), files, options)
    start, killed, survivors = time.monotonic(), 0, []
    for mutant, outcome in tried(trial, drawn, options):
        print(f"{mutant.file}:{mutant.line} {outcome}", flush=True)
        if outcome == "killed":
            killed += 1
        elif outcome == "survived":
            survivors.append(mutant)
    counted = killed + len(survivors)
    if counted == 0:
        raise InputError("no mutant compiles")
    score = 100 * killed / counted
    for mutant in survivors:
        print(f"\n{mutant.file}:{mutant.line} survives\n{mutant.file}\n- {mutant.before}\n+ {mutant.after}")
    print(f"\n{options.folder}: {killed} of {counted} mutants killed, {score:.0f} % (bar {options.bar:g} %), "
          f"{(time.monotonic() - start) / counted:.1f} s a mutant")
    return 0 if score >= options.bar else 1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="a folder with a library and tests, such as sim/ledger")
    parser.add_argument("--files", nargs="+", metavar="GLOB", help="only these .cpp files of the folder")
    parser.add_argument("--set", help="a named set of files: " + ", ".join(f"{folder} {name}" for folder, name in SETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40, help="so many mutants that compile (default 40)")
    parser.add_argument("--bar", type=float, default=85, help="percent of mutants that must be killed (default 85)")
    parser.add_argument("--filter", default="*", help="--gtest_filter of the tests that are run")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (default 2)")
    parser.add_argument("--build", default="build/release", help="build folder (default build/release)")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    options = parser.parse_args()
    if options.count < 1 or options.jobs < 1 or not 0 <= options.bar <= 100:
        parser.error("expected --count and --jobs of at least 1, --bar from 0 to 100")
    options.folder = options.folder.rstrip("/")
    return options


def interrupt(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    for stop in (signal.SIGINT, signal.SIGTERM):  # which a shell's background jobs ignore
        signal.signal(stop, interrupt)
    try:
        sys.exit(mutate(arguments()))
    except (InputError, making.ListError) as error:
        print(f"mutate: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
