#!/usr/bin/env python3
"""Says which tests the programs of a build ran, from the files that GoogleTest has written to the build's folder tests_ran.

  tools/tests_ran.py [BUILD]          how many ran, and how many were skipped for which reason; BUILD is build/release by default
  tools/tests_ran.py [BUILD] --list   their names, a line each: folder, test, and whether it ran or was skipped
  tools/tests_ran.py [BUILD] --repeated
                                      those that passed and that another build need not repeat: all but the quickest of each suite, and
                                      those whose names say that they compare bytes; a line each: program, test (tests/support/main.cpp)
"""

import argparse
import collections
import pathlib
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


def read(folder):
    """The tests of each file: (CTest's name, name, reason why it was skipped or None, whether it failed, seconds)."""
    for file in sorted(folder.glob("*.xml")):
        try:
            root = xml.etree.ElementTree.parse(file).getroot()
        except xml.etree.ElementTree.ParseError as error:
            sys.exit(f"tests_ran.py: {file}: {error}: the program ended before it had written which tests it ran")
        for case in root.iter("testcase"):
            if case.get("status") != "run":
                continue  # of another process of this program
            skipped = case.find("skipped")
            why = None
            if skipped is not None:
                why = ((skipped.text or skipped.get("message") or "").strip() or "no reason given").splitlines()[-1]
            name = f'{case.get("classname")}.{case.get("name")}'
            yield file.name.rsplit(".", 2)[0].replace(".", "/"), name, why, case.find("failure") is not None, float(case.get("time", 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default=ROOT / "build/release", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", help="names each test")
    parser.add_argument("--repeated", action="store_true", help="names each test that another build would repeat, and its program")
    options = parser.parse_args()
    folder = options.build / "tests_ran"
    if not folder.is_dir():
        parser.error(f"there is no folder {folder}: `ctest` in {options.build} makes it")
    tests = list(read(folder))
    if options.list:
        for where, name, why, *_ in tests:
            print(f"{where}\t{name}\t{'ran' if why is None else 'skipped: ' + why}")
        return
    if options.repeated:
        suites = collections.defaultdict(list)
        for where, name, why, failed, seconds in tests:
            if why is None and not failed:
                suites[where, name.rpartition(".")[0]].append((seconds, name))
        for (where, _), passed in suites.items():
            for _, name in sorted(passed)[1:]:
                if "Bytes" not in name:
                    print(f"{where.replace('/', '_')}_test\t{name}")
        return
    reasons = collections.Counter(why for _, _, why, *_ in tests if why is not None)
    failed = sum(failed for *_, failed, _ in tests)
    print(f"Inside these, {len(tests)} tests of GoogleTest: {len(tests) - reasons.total() - failed} passed, {failed} failed, "
          f"{reasons.total()} were skipped")
    for why, count in reasons.most_common():
        print(f"  {count:5} {why}")


if __name__ == "__main__":
    main()
