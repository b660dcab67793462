#!/usr/bin/env python3
"""What tools/build_cost.py, tools/mutate.py and tools/tests_ran.py make of small inputs. None builds anything here."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCES = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCES / "tools"))
sys.dont_write_bytecode = True

import build_cost  # noqa: E402
import mutants  # noqa: E402


def called(script, *arguments):
    """Exit code, standard output and standard error of a script."""
    done = subprocess.run([sys.executable, "-B", str(SOURCES / "tools" / script), *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def after(source):
    """What the mutants of a text make of their lines."""
    return [mutant.after for mutant in mutants.make_mutants("a.cpp", source)]


class Mutants(unittest.TestCase):
    def test_operators_bounds_and_constants(self):
        self.assertCountEqual(after("bool f(int a) { return a < 10; }"),
                              ["bool f(int a) { return a <= 10; }", "bool f(int a) { return a > 10; }",
                               "bool f(int a) { return a < 11; }", "bool f(int a) { return a < 9; }"])
        self.assertCountEqual(after("x = std::max(a, b) + 0.5;"),
                              ["x = std::min(a, b) + 0.5;", "x = std::max(a, b) - 0.5;", "x = std::max(a, b) + (2 * 0.5);"])
        self.assertCountEqual(after("kYear = 31'536'000;"), ["kYear = (2 * 31'536'000);"])
        self.assertCountEqual(after("return !a && b;"), ["return a && b;", "return !a || b;"])

    def test_statements_and_conditions(self):
        self.assertCountEqual(after("void f() {\n  int n;\n  n += a;\n  go(n);\n}"), ["n -= a;", ";", ";"])
        self.assertCountEqual(after("{\n  if (a) continue;\n}"), ["if (true) continue;", "if (false) continue;", "if (a) ;"])
        self.assertCountEqual(after("{\n  if (const auto b = a; b) throw b;\n}"),
                              ["if (const auto b = a; true) throw b;", "if (const auto b = a; false) throw b;",
                               "if (const auto b = a; b) ;"])

    def test_leaves_alone_what_does_nothing_or_what_no_test_may_break(self):
        for text in ("#include <a+b>\n", "// a < b\n", "/* a < b */\n", "const char* k = \"a < b + 1\";\n", "auto k = R\"(a < 1)\";\n",
                     "char k = '+';\n", "std::vector<std::map<A, B>> x;\n", "  assert(a < 1 && \"text\");\n", "template <class A>\nA f(const A& a);\n",
                     "for (auto& a : b) {\n  const A& c = d;\n}\n"):
            self.assertEqual(after(text), [], text)

    def test_a_mutant_is_applied_where_it_says(self):
        source = "int f() {\n  // a + b\n  return a + b;\n}\n"
        [mutant] = mutants.make_mutants("a.cpp", source)
        self.assertEqual(mutant.line, 3)
        self.assertEqual(mutant.applied(source), "int f() {\n  // a + b\n  return a - b;\n}\n")

    def test_the_seed_decides_and_lines_above_do_not(self):
        source = (SOURCES / "sim/ledger/bill.cpp").read_text()
        made = mutants.make_mutants("bill.cpp", source)
        order = [mutant.identity for mutant in mutants.drawn(made, 7)]
        self.assertEqual(order, [mutant.identity for mutant in mutants.drawn(reversed(made), 7)])
        moved = mutants.make_mutants("bill.cpp", "\n// remark\n" + source)
        self.assertEqual(order, [mutant.identity for mutant in mutants.drawn(moved, 7)])
        self.assertNotEqual(order, [mutant.identity for mutant in mutants.drawn(made, 8)])

    def test_reads_what_is_equivalent(self):
        known = mutants.read_equivalent("# why\na.cpp\n- x  <  1;\n+ x <= 1;\n= x is never 1\n- y;\n+ ;\n= as above\n", "list")
        self.assertEqual(known, {("a.cpp", "x < 1;", "x <= 1;"): "x is never 1", ("a.cpp", "y;", ";"): "as above"})
        for text, place in (("- x\n", "list:1:"), ("a.cpp\n- x\n= why\n", "list:3:"), ("a.cpp\n- x\n+ y\n", "no reason")):
            with self.assertRaisesRegex(mutants.ListError, place):
                mutants.read_equivalent(text, "list")

    def test_the_list_of_the_project_can_be_read(self):
        for file, before, changed in mutants.read_equivalent((SOURCES / "tools/mutants_equivalent.txt").read_text(), "list"):
            made = mutants.make_mutants(file, (SOURCES / file).read_text())
            self.assertIn((file, before, changed), [mutant.identity for mutant in made])

    def test_lists_without_building(self):
        code, out, _ = called("mutate.py", "sim/ledger", "--list", "--count", "3", "--seed", "5")
        self.assertEqual(code, 0)
        self.assertEqual(out.count("\n- "), 3)
        self.assertEqual(out, called("mutate.py", "sim/ledger", "--list", "--count", "3", "--seed", "5")[1])

    def test_says_what_is_wrong(self):
        for arguments, says in ((["sim/leger"], "found no folder \"sim/leger\""), (["sim/ledger", "--files", "price*"], "no .cpp file is \"price*\""),
                                (["sim/ledger", "--set", "money"], "no set \"money\", expected one of: platforms --set money"),
                                (["sim/ledger", "--build", "nowhere"], "nowhere is no build folder"), (["sim/ledger", "--count", "0"], "--count"),
                                (["sim/ledger", "--seed", "one"], "--seed")):
            code, _, err = called("mutate.py", *arguments)
            self.assertEqual(code, 2, arguments)
            self.assertIn(says, err)


LOG = """# ninja log v5
0\t9000\t1\tsim/ledger/CMakeFiles/ganymede_sim_ledger.dir/Unity/unity_0_cxx.cxx.o\taaaa
0\t3000\t2\tsim/ledger/CMakeFiles/ganymede_sim_ledger.dir/Unity/unity_0_cxx.cxx.o\taaaa
0\t6000\t2\ttests/sim/ledger/CMakeFiles/sim_ledger_test.dir/Unity/unity_0_cxx.cxx.o\tbbbb
6000\t7000\t3\t/build/tests/sim/ledger/sim_ledger_test[1]_tests.cmake\tcccc
6000\t7000\t3\tbin/sim_ledger_test\tcccc
"""
DEPENDENCIES = """sim/ledger/CMakeFiles/ganymede_sim_ledger.dir/Unity/unity_0_cxx.cxx.o: #deps 2, deps mtime 1 (VALID)
    /project/sim/ledger/bill.cpp
    include/common/common/units.hpp

tests/sim/ledger/CMakeFiles/sim_ledger_test.dir/Unity/unity_0_cxx.cxx.o: #deps 1, deps mtime 1 (VALID)
    include/common/common/units.hpp
    include/common/common/errors.hpp

"""


class BuildCost(unittest.TestCase):
    def test_each_output_counts_once_with_its_last_time(self):
        steps = build_cost.read_log(LOG, "log")
        self.assertEqual(sorted((step.seconds, build_cost.place_of(step)) for step in steps),
                         [(1.0, "links and the rest"), (3.0, "sim/ledger"), (6.0, "tests/sim/ledger")])

    def test_a_header_costs_the_steps_that_include_it(self):
        steps = build_cost.read_log(LOG, "log")
        files = build_cost.read_dependencies(DEPENDENCIES)
        text = build_cost.report(steps, files, ["common/units.hpp", "common/errors.hpp", "common/json.hpp"], 1)
        self.assertIn("9.0 s 100.0 %  common/units.hpp (2 of 2 steps)", text)
        self.assertIn("6.0 s  66.7 %  common/errors.hpp (1 of 2 steps)", text)
        self.assertIn("0.0 s   0.0 %  common/json.hpp (0 of 2 steps)", text)
        self.assertIn("10.0 s          3 steps, 2 of which compile (9.0 s); tests 60 %", text)
        self.assertIn("by the clock", text)

    def test_says_what_is_wrong(self):
        for text, place in (("", "log:1:"), ("# ninja log v4\n", "log:1:"), (LOG + "1\t2\n", "log:7:"), (LOG + "5\t2\t0\tx.o\tdd\n", "log:7:")):
            with self.assertRaisesRegex(build_cost.InputError, place):
                build_cost.read_log(text, "log")
        code, _, err = called("build_cost.py", "--build", "nowhere")
        self.assertEqual(code, 2)
        self.assertIn("nowhere has no .ninja_log", err)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / ".ninja_log").write_text(LOG)
            code, _, err = called("build_cost.py", "--build", folder, "--header", "common/jason.hpp")
            self.assertEqual(code, 2)
            self.assertIn("found no header \"common/jason.hpp\"", err)
            code, out, _ = called("build_cost.py", "--build", folder, "--header")
            self.assertEqual(code, 0)
            self.assertIn("tests/sim/ledger", out)


RAN = """<testsuites><testsuite>
<testcase name="First" status="run" classname="A" time="2"/><testcase name="Second" status="run" classname="A" time="1"/>
<testcase name="AreTheSameBytes" status="run" classname="A" time="2"/><testcase name="Only" status="run" classname="B" time="3"/>
<testcase name="Third" status="run" classname="A"><skipped message="why"/></testcase>
<testcase name="Fourth" status="run" classname="A"><failure/></testcase><testcase name="Fifth" status="notrun" classname="A"/>
</testsuite></testsuites>"""


class SoakTest(unittest.TestCase):
    def test_refuses_seconds_in_which_nothing_can_be_done(self):
        for seconds in ("-5", "0", "nan"):
            code, _, err = called("soak.py", f"--seconds={seconds}")
            self.assertEqual(code, 2)
            self.assertIn(f"--seconds: found {seconds}, expected more than 0", err)


class TestsRan(unittest.TestCase):
    def test_names_what_passed_but_the_quickest_of_each_suite_and_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "tests_ran").mkdir()
            (pathlib.Path(folder) / "tests_ran" / "sim.ledger.1_of_2.xml").write_text(RAN)
            self.assertEqual(called("tests_ran.py", folder, "--repeated")[1], "sim_ledger_test\tA.First\n")
            code, _, err = called("tests_ran.py", str(pathlib.Path(folder) / "tests_ran"), "--repeated")
            self.assertEqual(code, 2)
            self.assertIn("there is no folder", err)

    @unittest.skipUnless("GANYMEDE_TEST_PROGRAM" in os.environ, "CTest says which program")
    def test_what_passed_elsewhere_is_left_out(self):
        program = os.environ["GANYMEDE_TEST_PROGRAM"]

        def listed(*arguments, **variables):
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("GTEST_", "GANYMEDE_TESTED"))}
            done = subprocess.run([program, "--gtest_list_tests", *arguments], capture_output=True, text=True, env=kept | variables)
            suite, names = "", []
            for line in done.stdout.splitlines():
                if not line.startswith(" "):
                    suite = line.split()[0]
                elif suite.endswith("."):
                    names.append(suite + line.split()[0])
            return done.returncode, names

        _, every = listed()
        with tempfile.TemporaryDirectory() as folder:
            passed = pathlib.Path(folder) / "passed"
            kept = every[5:8]
            passed.write_text("".join(f"{pathlib.Path(program).name}\t{name}\n" for name in every if name not in kept) + f"other_test\t{kept[0]}\n")
            self.assertEqual(listed(GANYMEDE_TESTED=str(passed)), (0, kept))
            self.assertEqual(listed("--gtest_filter=-" + kept[0], GANYMEDE_TESTED=str(passed)), (0, kept[1:]))
            self.assertEqual(listed(GANYMEDE_TESTED=folder + "/absent")[0], 2)


if __name__ == "__main__":
    unittest.main()
