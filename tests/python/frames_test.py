"""Results as pandas frames: a row for each run or candidate, columns of numbers, and `json_normalize` alone."""
import unittest
from unittest import mock

import ganymede
from support import need, request, scenario, study

need("pandas")

import pandas  # noqa: E402
from pandas.api.types import is_bool_dtype, is_numeric_dtype  # noqa: E402


class Frames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sweep = ganymede.sweep(study())
        cls.plan = ganymede.plan(request())

    def test_a_row_for_each_run(self):
        frame = self.sweep.to_pandas()
        self.assertEqual(len(frame), len(self.sweep))
        self.assertEqual(list(frame["seed"]), [run.seed for run in self.sweep])
        self.assertEqual(list(frame["usd"]), [run.usd for run in self.sweep])
        self.assertEqual(list(frame["gpu_seconds_compute"]), [run.gpu_seconds["compute"] for run in self.sweep])
        uses = [name for name in frame if name.startswith("gpu_seconds_") and name != "gpu_seconds_total"]
        self.assertLess((frame[uses].sum(axis=1) - frame["gpu_seconds_total"]).abs().max(), 1e-6)
        for name in ("seconds", "usd", "usd_low", "usd_high", "kwh", "deadline_seconds", "budget_usd", "seed", "gpus"):
            self.assertTrue(is_numeric_dtype(frame[name]), name)
        self.assertTrue(is_bool_dtype(frame["met"]))
        # What tidy means: seeds are a group away.
        medians = frame.groupby(["platform", "gpus"])["usd"].median()
        self.assertEqual(len(medians), 6)

    def test_a_row_for_each_candidate(self):
        frame = self.plan.to_pandas()
        self.assertEqual(len(frame), len(self.plan))
        self.assertEqual(set(frame["seed"]), {7})
        self.assertEqual(frame[frame["chosen"]]["usd"].iloc[0], self.plan.chosen.usd)
        self.assertTrue((frame["seconds_low"] <= frame["seconds"]).all())

    def test_single_results_and_lists(self):
        run = ganymede.simulate(scenario())
        self.assertEqual(run.to_pandas().to_dict("records")[0]["usd"], run.usd)
        offers = ganymede.catalog(provider="aws", gpu="V100").to_pandas()
        self.assertTrue(is_numeric_dtype(offers["usd_per_hour"]))
        rows = ganymede.allreduce(catalog="aws", instance="p4d.24xlarge", scheme="ring", bytes=[8, 1024]).to_pandas()
        self.assertEqual(list(rows["bytes"]), [8, 1024])

    def test_json_normalize_alone_gives_numbers(self):
        runs = pandas.json_normalize([run.document for run in self.sweep])
        for name in ("time.total_s", "cost.instance_hours_by_use_number.compute", "provenance.seed"):
            self.assertTrue(is_numeric_dtype(runs[name]), name)
        self.assertEqual(list(runs["cost.total_usd"].astype(float)), list(self.sweep.to_pandas()["usd"]))
        bills = pandas.json_normalize([run.document["cost"] for run in self.sweep], "items")
        self.assertAlmostEqual(bills["usd_number"].sum(), runs["cost.total_usd"].astype(float).sum())
        candidates = pandas.json_normalize(self.plan.document["simulated"])
        for name in ("usd_per_hour_number", "price.usd_per_hour_number", "usd.median", "time_s.median"):
            self.assertTrue(is_numeric_dtype(candidates[name]), name)

    def test_without_pandas_it_is_said_what_to_install(self):
        with mock.patch.dict("sys.modules", {"pandas": None}):
            with self.assertRaisesRegex(ImportError, r"ganymede\[pandas\]"):
                self.sweep.to_pandas()


if __name__ == "__main__":
    unittest.main()
