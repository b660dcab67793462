"""Plots: what they draw are the numbers of the results."""
import io
import unittest
from unittest import mock

import ganymede
from support import need, request, scenario, study

need("matplotlib")

import matplotlib.pyplot as plt  # noqa: E402


class Plots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.sweep = ganymede.sweep(study(seeds=[1]))

    def tearDown(self):
        plt.close("all")

    def saved(self, axes):
        """The picture, which is drawn for real."""
        out = io.BytesIO()
        axes.figure.savefig(out, format="png", dpi=50)
        self.assertGreater(len(out.getvalue()), 2000)

    def test_time_cost_of_runs(self):
        axes = ganymede.plot.time_cost(self.sweep)
        drawn = {tuple(point) for dots in axes.collections if hasattr(dots, "get_offsets") for point in dots.get_offsets()}
        for run in self.sweep:
            self.assertIn((run.seconds / 3600, run.usd), drawn)
        self.assertEqual([text.get_text() for text in axes.get_legend().get_texts()], ["aws on-demand", "gcp spot"])
        self.assertIn(self.sweep.cheapest.allocation, {text.get_text() for text in axes.texts})
        self.saved(axes)

    def test_time_cost_of_a_plan_draws_its_goals(self):
        plan = ganymede.plan(request(deadline="20min", budget="0.5USD"))
        axes = ganymede.plot.time_cost(plan)
        named = [text.get_text() for text in axes.get_legend().get_texts()]
        self.assertIn("deadline", named)
        self.assertIn("budget", named)
        line = axes.get_lines()[-3].get_xydata()  # before those of the goals
        self.assertTrue((line[1:, 0] > line[:-1, 0]).all())
        self.saved(axes)

    def test_scaling_has_a_line_for_each_platform(self):
        axes = ganymede.plot.scaling(self.sweep)
        lines = {line.get_label(): line for line in axes.get_lines()}
        for platform in ("aws us-east-1", "gcp us-central1"):
            drawn = lines[f"{platform}, V100, ring"].get_xydata()
            rates = sorted((run.gpus, run.images_per_second) for run in self.sweep if run.platform == platform)
            self.assertEqual([tuple(point) for point in drawn], rates)
        self.saved(axes)

    def test_step_anatomy_draws_the_spans_of_some_workers(self):
        run = ganymede.simulate(scenario(), show_steps=1)
        axes = ganymede.plot.step_anatomy(run, workers=2)
        bars = sum(len(collection.get_paths()) for collection in axes.collections)
        spans = [row for row in run.document["step_spans"]["rows"] if row[0] < 2]
        self.assertEqual(bars, len(spans))
        self.assertIn("worker 1: network", [label.get_text() for label in axes.get_yticklabels()])
        self.saved(axes)

    def test_it_is_said_what_is_missing(self):
        with self.assertRaisesRegex(ValueError, "no steps to show"):
            ganymede.plot.step_anatomy(self.sweep.runs[0])
        with mock.patch.dict("sys.modules", {"matplotlib": None, "matplotlib.pyplot": None}):
            with self.assertRaisesRegex(ImportError, r"ganymede\[plot\]"):
                ganymede.plot.scaling(self.sweep)

    def test_given_axes_are_drawn_on(self):
        axes = plt.subplots()[1]
        self.assertIs(ganymede.plot.time_cost(self.sweep, axes), axes)


if __name__ == "__main__":
    unittest.main()
