"""Finding, checking, running and ending the program; and its errors as exceptions."""
import json
import os
import shutil
import subprocess
import sys
import time
import unittest
from unittest import mock

import ganymede
from ganymede import _errors, _program, _progress
from support import PROGRAM, ROOT, scenario, study, working_folder, write_program

VERSION = f"echo ganymede {ganymede.__version__}\n"


def living_in_group(group):
    """Processes of a process group that have not ended."""
    living = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                    state, _, of_group = file.read().rsplit(")", 1)[1].split()[:3]
            except OSError:
                continue
            if int(of_group) == group and state != "Z":
                living.append(name)
    return living


class Finding(unittest.TestCase):
    def test_the_package_has_the_programs_version(self):
        said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.split()[1], ganymede.__version__)

    def test_argument_then_environment_then_path_then_checkout(self):
        with working_folder() as folder, mock.patch.dict(os.environ):
            named = write_program(os.path.join(folder, "named"), VERSION)
            on_path = write_program(os.path.join(folder, "ganymede"), VERSION)
            os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]
            self.assertEqual(str(ganymede.find_program(named)), named)
            self.assertEqual(str(ganymede.find_program("ganymede")), on_path)
            self.assertEqual(str(ganymede.find_program()), PROGRAM)
            os.environ["GANYMEDE"] = named
            self.assertEqual(str(ganymede.find_program()), named)
            del os.environ["GANYMEDE"]
            self.assertEqual(str(ganymede.find_program()), on_path)
        with mock.patch.object(shutil, "which", return_value=None):
            built = os.path.join(ROOT, "build", "release", "bin", "ganymede")
            self.assertIn(built, map(str, _program._candidates()))

    def test_a_missing_program_is_said_with_what_to_do(self):
        with self.assertRaisesRegex(ganymede.ProgramNotFound, "program: there is no file .*/nowhere"):
            ganymede.simulate(scenario(), program="/nowhere")
        with self.assertRaisesRegex(ganymede.ProgramNotFound, "cannot be executed"):
            ganymede.find_program(__file__)
        with mock.patch.dict(os.environ), mock.patch.object(_program, "_candidates", return_value=iter(())):
            del os.environ["GANYMEDE"]
            with self.assertRaisesRegex(ganymede.ProgramNotFound, "quickstart.*PATH.*GANYMEDE"):
                ganymede.catalog()

    def test_another_version_and_other_programs_are_refused(self):
        with working_folder() as folder:
            old = write_program(os.path.join(folder, "old"), "echo ganymede 0.0.9\n")
            with self.assertRaisesRegex(ganymede.VersionMismatch, "0.0.9.*" + ganymede.__version__):
                ganymede.find_program(old)
            lost = write_program(
                os.path.join(folder, "lost"), "echo 'error while loading shared libraries: libsimgrid.so' >&2; exit 127\n"
            )
            with self.assertRaisesRegex(ganymede.ProgramNotFound, "libsimgrid.so; docs/python.md"):
                ganymede.find_program(lost)
            with self.assertRaisesRegex(ganymede.ProgramNotFound, "does not answer as ganymede does"):
                ganymede.find_program("/bin/true")

    def test_a_rebuilt_program_is_asked_again(self):
        with working_folder() as folder:
            path = write_program(os.path.join(folder, "x"), VERSION)
            ganymede.find_program(path)
            write_program(path, "echo ganymede 9.0.0\n")
            os.utime(path, ns=(0, 12345))
            with self.assertRaises(ganymede.VersionMismatch):
                ganymede.find_program(path)

    def test_the_module_runs_the_program(self):
        environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}
        done = subprocess.run([sys.executable, "-m", "ganymede", "simulate", "none.json"], env=environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("none.json: cannot be read", done.stderr)


class Errors(unittest.TestCase):
    def test_a_wrong_value_names_file_and_place(self):
        with self.assertRaisesRegex(ganymede.InputError, "found -1, expected an integer") as caught:
            ganymede.simulate(scenario(platform={"catalog": "aws", "instance": "p3.8xlarge", "nodes": -1}))
        self.assertEqual((caught.exception.file, caught.exception.pointer), ("<scenario>", "/platform/nodes"))
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(ganymede.InputError) as caught:
            ganymede.sweep(study(schemes=["rings"]))
        self.assertEqual((caught.exception.file, caught.exception.pointer), ("<study>", "/schemes/0"))
        self.assertIn('"ring"', str(caught.exception))

    def test_a_file_that_is_no_json_names_line_and_column(self):
        with working_folder():
            with open("bad.json", "w", encoding="utf-8") as out:
                out.write('{"schema": \n 1, }')
            with self.assertRaises(ganymede.InputError) as caught:
                ganymede.simulate("bad.json")
        self.assertEqual((caught.exception.file, caught.exception.line, caught.exception.column), ("bad.json", 2, 5))

    def test_a_file_that_is_not_there(self):
        with self.assertRaisesRegex(ganymede.InputError, "none.json: cannot be read") as caught:
            ganymede.plan("none.json")
        self.assertEqual((caught.exception.file, caught.exception.pointer), ("none.json", None))

    def test_options_that_do_not_exist(self):
        with self.assertRaisesRegex(ganymede.InputError, "--modl: no such option, did you mean --model"):
            ganymede.plan(modl="x")

    def test_values_that_are_no_json(self):
        with self.assertRaisesRegex(ganymede.InputError, "<scenario>: cannot be written as JSON"):
            ganymede.simulate(scenario(seed=object()))
        with self.assertRaisesRegex(ganymede.InputError, "cannot be written as JSON"):
            ganymede.simulate(scenario(), changes={"/fidelity/precision": float("nan")})

    def test_what_is_no_input(self):
        for given, found in ((None, "NoneType"), (7, "int"), ([scenario()], "list")):
            with self.assertRaisesRegex(ganymede.InputError, f"<scenario>: found a {found}, expected the path of a file"):
                ganymede.simulate(given)
        for given in (b"none.json", "none.json"):
            with self.assertRaisesRegex(ganymede.InputError, "none.json: cannot be read"):
                ganymede.simulate(given)
        with self.assertRaisesRegex(ganymede.InputError, "^--help: cannot be read"):
            ganymede.simulate("--help")
        with self.assertRaisesRegex(ganymede.InputError, "cannot be handed to the program: embedded null byte"):
            ganymede.plan(model="a\0")

    def test_names_that_are_not_utf_8(self):
        with working_folder():
            name = os.fsdecode(b"n\xff.json")
            with open(name, "w", encoding="utf-8") as out:
                json.dump(scenario(), out)
            with self.assertRaisesRegex(ganymede.InputError, r"n\\xff.json: is not UTF-8"):
                ganymede.simulate(name)

    def test_answers_that_are_cut_short_or_of_another_version(self):
        for printed, said in (("{\"schema\": \"gany", "answer of 16 bytes is no complete JSON"), ("[1, 2]", "not of this package's"),
                              ("{\"schema\": \"ganymede.result/1\"}", "'run' is missing"), ("[" * 10**5, "no complete JSON")):
            with self.subTest(said), working_folder() as folder:
                with open("answer", "w", encoding="utf-8") as out:
                    out.write(printed)
                short = write_program(os.path.join(folder, "short"), f'[ "$1" = --version ] && {VERSION.strip()} || cat answer\n')
                with self.assertRaisesRegex(ganymede.ProgramFailure, said):
                    ganymede.simulate(scenario(), program=short)
        with working_folder() as folder:
            odd = write_program(os.path.join(folder, "odd"), "printf '\\377 1'\n")
            with self.assertRaisesRegex(ganymede.ProgramNotFound, "does not answer as ganymede does"):
                ganymede.find_program(odd)

    def test_a_closed_standard_output(self):
        """The first free descriptor is then that of the standard output, which must not become the progress's."""
        code = ("import ganymede, sys\n"
                f"run = ganymede.sweep({study(gpus=[1])!r}, progress=lambda *_: None)\n"
                "sys.stderr.write(str(len(run)))")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&-', "sh", sys.executable, "-c", code], stderr=subprocess.PIPE,
                              text=True, env=environment, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, "4"))

    def test_what_cannot_be_served_is_infeasible(self):
        huge = {**scenario()["workload"], "batch_per_gpu": 10**6}
        with self.assertRaises((ganymede.Infeasible, ganymede.InputError)):
            ganymede.simulate(scenario(workload=huge))
        error = _program.error_of(_program.Output(3, b"", "a remark\nganymede: too large\n"))
        self.assertIsInstance(error, ganymede.Infeasible)
        self.assertEqual(str(error), "too large")

    def test_a_cluster_is_not_a_training(self):
        with working_folder():
            with open("cluster.json", "wb") as out:
                out.write(subprocess.run([PROGRAM, "example", "cluster"], capture_output=True, check=True).stdout)
            with self.assertRaisesRegex(ganymede.InputError, "simulate_cluster"):
                ganymede.simulate("cluster.json")

    def test_a_service_is_its_members(self):
        with working_folder():
            with open("service.json", "wb") as out:
                out.write(subprocess.run([PROGRAM, "example", "service"], capture_output=True, check=True).stdout)
            service = ganymede.simulate_service("service.json", changes={"/duration": "1min"})
            self.assertGreater(service["latency"]["p95_s"], 0)
            with self.assertRaisesRegex(ganymede.InputError, "simulate_service"):
                ganymede.simulate("service.json")

    def test_places_in_messages(self):
        for message, file, pointer, line, column in (
            ("a b.json: /x/y z: found 1", "a b.json", "/x/y z", None, None),
            ("a.json: /: the key is missing", "a.json", "/", None, None),
            ("a.csv: line 7: found x", "a.csv", None, 7, None),
            ("a.json: line 2, column 1: not valid", "a.json", None, 2, 1),
            ("--nodes 3: too many", None, None, None, None),
        ):
            error = _errors.input_error(message)
            self.assertEqual((error.file, error.pointer, error.line, error.column), (file, pointer, line, column))
            self.assertEqual(str(error), message)

    def test_a_crash_names_the_signal(self):
        with working_folder() as folder:
            crash = write_program(os.path.join(folder, "x"), f'[ "$1" = --version ] && {VERSION}kill -SEGV $$\n'.replace(
                VERSION, f"echo ganymede {ganymede.__version__} && exit\n"))
            with self.assertRaisesRegex(ganymede.ProgramFailure, "SIGSEGV"):
                ganymede.catalog(program=crash)


class Interrupts(unittest.TestCase):
    def interrupted(self, program, what):
        """Lets a progress function interrupt the program, and expects that none of its processes goes on."""
        started = []
        popen = subprocess.Popen

        def remember(*arguments, **options):
            started.append(popen(*arguments, **options))
            return started[-1]

        def interrupt(done, count, of):
            raise KeyboardInterrupt

        with mock.patch.object(_program.subprocess, "Popen", remember), self.assertRaises(KeyboardInterrupt):
            what(program=program, progress=interrupt)
        group = started[-1].pid
        for _ in range(100):
            if not living_in_group(group):
                return
            time.sleep(0.1)
        self.fail(f"processes go on: {living_in_group(group)}")

    def test_an_interrupt_ends_the_program_and_its_children(self):
        many = study(seeds={"first": 1, "count": 5000}, gpus=[1])
        self.interrupted(None, lambda **options: ganymede.sweep(many, **options))

    def test_a_program_that_does_not_heed_it_is_killed(self):
        with working_folder() as folder, mock.patch.object(_program, "_GRACE_S", 0.3):
            deaf = write_program(
                os.path.join(folder, "deaf"),
                f'[ "$1" = --version ] && echo ganymede {ganymede.__version__} && exit\n'
                'trap "" INT\nwhile [ "$1" != --progress-fd ]; do shift; done\n'
                'eval "echo 0 10 runs >&$2"\nsleep 100 & wait\nsleep 100\n',
            )
            self.interrupted(deaf, lambda **options: ganymede.sweep("x.json", **options))
            # Its child alone does not heed the interrupt.
            with open(deaf, encoding="utf-8") as script:
                text = script.read().replace('trap "" INT\n', "").replace("sleep 100 & wait", '(trap "" INT; sleep 100) & wait')
            with open(deaf, "w", encoding="utf-8") as script:
                script.write(text)
            self.interrupted(deaf, lambda **options: ganymede.sweep("x.json", **options))


class ProgressBars(unittest.TestCase):
    def test_a_notebook_has_a_bar_that_goes_away(self):
        shown = []

        class Handle:
            def update(self, data, raw):
                shown.append(data["text/html"])

        def display(data, raw, display_id):
            shown.append(data["text/html"])
            return Handle()

        bar = _progress._Bar(display)
        with mock.patch.object(_progress, "_drawing", return_value=bar), mock.patch.object(_progress, "_SILENT_S", 0), \
                mock.patch.object(_progress, "_REDRAW_S", 0):
            ganymede.sweep(study(gpus=[1]))
        self.assertIn('<progress value="4" max="4"></progress> 4/4 runs', shown[-2])
        self.assertEqual(shown[-1], "")

    def test_nobody_is_told_without_a_terminal(self):
        with _progress.reporter(False) as report:
            self.assertIsNone(report)
        closed = open(os.devnull, "w", encoding="utf-8")
        closed.close()
        with mock.patch.object(_progress.sys, "stderr", closed), _progress.reporter(None) as report:
            self.assertIsNone(report)
        with mock.patch.object(_progress.sys.stderr, "isatty", return_value=False, create=True), \
                _progress.reporter(None) as report:
            self.assertIsNone(report)


if __name__ == "__main__":
    unittest.main()
