#!/usr/bin/env python3
"""Runs the tests of one file against a program: run.py PROGRAM FILE_test.py [unittest's options].

Exit code 77: skipped, because something that the file needs is not installed here; the reason is said.
"""
import importlib
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.environ["GANYMEDE"] = os.path.abspath(sys.argv[1])
    os.environ["MPLBACKEND"] = "Agg"
    sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
    try:
        module = importlib.import_module(os.path.splitext(os.path.basename(sys.argv[2]))[0])
    except unittest.SkipTest as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return 77
    result = unittest.main(module, argv=[sys.argv[2], *sys.argv[3:]], exit=False).result
    if result.wasSuccessful() and result.testsRun == len(result.skipped):
        return 77
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":  # not in the workers that a test spawns, which import this file too
    sys.exit(main())
