"""Results of the real program as Python objects. Expected values are read from the documents that come along."""
import json
import os
import unittest
from unittest import mock

import ganymede
from ganymede._program import execute
from support import request, scenario, study, working_folder


class Simulate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = ganymede.simulate(scenario())

    def test_fields_are_the_documents_numbers(self):
        run, document = self.run_, self.run_.document
        self.assertEqual(document["schema"], "ganymede.result/1")
        self.assertEqual((run.gpu, run.gpus, run.scheme, run.seed), ("V100", 4, "ring", 1))
        self.assertEqual(run.seconds, document["time"]["total_s"])
        self.assertEqual([run.seconds_low, run.seconds_high], document["time"]["interval_s"])
        self.assertEqual(run.usd, float(document["cost"]["total_usd"]))
        self.assertLessEqual(run.usd_low, run.usd)
        self.assertEqual(run.gpu_seconds, document["gpu_seconds"])
        self.assertAlmostEqual(sum(run.gpu_seconds.values()), 2 * run.gpu_seconds["total"])
        self.assertEqual(run.images_per_second, run.images / (run.steps * run.step_seconds))
        self.assertIsNone(run.deadline_seconds)
        self.assertTrue(run.met)

    def test_bill_and_events(self):
        self.assertAlmostEqual(sum(item.usd for item in self.run_.bill), self.run_.usd)
        item = self.run_.bill[0]
        self.assertAlmostEqual(item.quantity * item.unit_price_usd, item.usd, places=6)
        self.assertEqual([event.event for event in self.run_.events][-1], "finished")
        self.assertEqual(self.run_.events[-1].at_seconds, self.run_.seconds)
        self.assertTrue(self.run_.warnings)

    def test_every_amount_of_the_document_is_a_number_too(self):
        cost = self.run_.document["cost"]
        for item in cost["items"]:
            self.assertEqual(item["usd_number"], float(item["usd"]))
        for use, usd in cost["instance_hours_by_use"].items():
            self.assertEqual(cost["instance_hours_by_use_number"][use], float(usd))

    def test_of_an_older_program_it_is_read(self):
        older = json.loads(json.dumps(self.run_.document))
        older["cost"].update(usd=1.0, usd_interval=[0.5, 2.0])  # as versions before 0.3 wrote beside total_usd
        self.assertEqual(ganymede.Run.from_document(older), self.run_)

    def test_goals_that_are_missed_are_a_result(self):
        run = ganymede.simulate(scenario(deadline="1s", budget="0.30USD"))
        self.assertFalse(run.met)
        self.assertEqual((run.deadline_seconds, run.budget_usd), (1.0, 0.3))
        self.assertEqual(run.document["goals"]["budget_usd_number"], 0.3)

    def test_changes_options_and_seeds(self):
        run = ganymede.simulate(scenario(), changes={"/synchronization/scheme": "nccl"}, nodes=2, seed=5)
        self.assertEqual((run.scheme, run.gpus, run.seed), ("nccl", 8, 5))
        spot = ganymede.simulate(scenario(), market="spot", seeds=3)
        self.assertEqual(spot.spread.seeds, 3)
        self.assertLessEqual(spot.spread.usd_p5, spot.spread.usd_median)

    def test_a_dict_is_as_good_as_its_file(self):
        with working_folder():
            with open("here.json", "w", encoding="utf-8") as out:
                json.dump(scenario(), out)
            self.assertEqual(ganymede.simulate("here.json"), self.run_)

    def test_paths_in_a_dict_start_at_the_working_directory(self):
        with working_folder():
            quality = {"schema": "ganymede.quality/1", "model": "mlp-gan", "dataset": "mnist", "features": "x",
                       "curves": [{"batch": 256, "seed": 1, "software": "x",
                                   "points": [{"images": 1000, "fid": 400.0, "inception_score": 1.1},
                                              {"images": 500000, "fid": 20.0, "inception_score": 2.1}]}]}
            with open("curve.json", "w", encoding="utf-8") as out:
                json.dump(quality, out)
            target = {"quality": {"fid": 100, "curve": "curve.json"}}
            workload = {**{k: v for k, v in scenario()["workload"].items() if k != "epochs"}, **target}
            run = ganymede.simulate(scenario(workload=workload))
            self.assertTrue(1000 < run.images < 500000)
            os.remove("curve.json")
            with self.assertRaisesRegex(ganymede.InputError, ": curve.json: cannot be read"):
                ganymede.simulate(scenario(workload=workload))

    def test_first_screen_is_that_of_the_report(self):
        page = self.run_._repr_html_()
        self.assertIn("Ganymede", page)
        self.assertIn(f"{self.run_.usd:.4f} USD", page)
        self.assertNotIn("<script", page)
        self.assertLess(len(page), 20000)


class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seen = []
        cls.sweep = ganymede.sweep(study(), progress=lambda *what: cls.seen.append(what))

    def test_a_run_for_each_combination(self):
        self.assertEqual(len(self.sweep), 2 * 3 * 2)
        self.assertEqual(sorted({run.seed for run in self.sweep}), [1, 2])
        self.assertEqual(self.sweep.cheapest.usd, min(run.usd for run in self.sweep))
        self.assertEqual(self.sweep.fastest.seconds, min(run.seconds for run in self.sweep))
        self.assertEqual(self.sweep.failed, [])

    def test_progress_is_told(self):
        self.assertEqual(self.seen[-1], (12, 12, "runs"))
        self.assertEqual(sorted(self.seen), self.seen)

    def test_failed_runs_are_beside_the_others(self):
        # A recording in which node after node is taken back before it is ready, and another platform.
        with working_folder():
            with open("nodes.csv", "w", encoding="utf-8") as out:
                out.write("time_s,nodes\n0,1\n1,0\n")
            spot = {"catalog": "aws", "region": "us-east-1", "gpu": "V100", "market": "spot"}
            lost = {**spot, "capacity": "./nodes.csv"}
            sweep = ganymede.sweep(study(platforms=[lost, {**spot, "market": "on-demand"}], gpus=[1], seeds=[1]))
        self.assertEqual([run.market for run in sweep], ["on-demand"])
        self.assertEqual([(run.seed, run.kind) for run in sweep.failed], [(1, "infeasible")])
        self.assertIn("<study>: this run never finishes", sweep.failed[0].reason)

    def test_first_screen(self):
        self.assertIn("class=answer>Take <strong>", self.sweep._repr_html_())


class Plan(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = ganymede.plan(request())

    def test_chosen_is_the_best_candidate(self):
        plan = self.plan
        self.assertEqual((plan.model, plan.images, plan.seed), ("dcgan-64", 1000000, 7))
        self.assertEqual((plan.deadline_seconds, plan.budget_usd), (60 * 3600.0, 500.0))
        self.assertTrue(plan.chosen.chosen)
        self.assertEqual(plan.chosen.usd, plan.chosen.document["usd"]["median"])
        self.assertEqual(plan.chosen.document["usd_per_hour_number"], plan.chosen.usd_per_hour)
        self.assertEqual(len(plan), plan.document["searched"]["simulated"])
        self.assertEqual(sum(candidate.chosen for candidate in plan), 1)
        self.assertLessEqual(plan.pareto[0].seconds, plan.pareto[-1].seconds)
        self.assertIn(plan.cheapest.instance, {candidate.instance for candidate in plan})

    def test_what_was_chosen_can_be_simulated(self):
        run = ganymede.simulate(self.plan, seeds=1)
        self.assertEqual(run.allocation, f"{self.plan.chosen.nodes} x {self.plan.chosen.instance}")

    def test_nothing_that_meets_the_goals_is_a_result(self):
        plan = ganymede.plan(request(deadline="1s"))
        self.assertIsNone(plan.chosen)
        self.assertIsNone(plan.cheapest)
        self.assertEqual(plan.candidates, [])
        self.assertIn("nothing meets the goals", repr(plan))
        with self.assertRaisesRegex(ganymede.InputError, "chosen nothing"):
            ganymede.simulate(plan)

    def test_options_alone_are_a_request(self):
        plan = ganymede.plan(model="dcgan-64", images=100000, catalog="aws", gpu=["V100", "T4"], region="us-east-1",
                             max_gpus=1, market="on-demand", batch=[64])
        self.assertLessEqual({"V100", "T4"}, {candidate.gpu for candidate in plan})

    def test_first_screen(self):
        self.assertIn("Rent", self.plan._repr_html_())


class Lists(unittest.TestCase):
    def test_collectives(self):
        rows = ganymede.allreduce(catalog="aws", instance="p4d.24xlarge", nodes=2, scheme=["ring", "nccl"],
                                  bytes=["64MiB", 1024])
        self.assertEqual([(row.scheme, row.bytes) for row in rows],
                         [("ring", 64 << 20), ("nccl", 64 << 20), ("ring", 1024), ("nccl", 1024)])
        for row in rows:
            self.assertEqual(row.ranks, 16)
            self.assertIsNone(row.difference)
            self.assertAlmostEqual(row.algbw_gb_per_second, row.bytes / row.seconds / 1e9)
        self.assertIn("<td>nccl</td>", rows._repr_html_())

    def test_catalog(self):
        offers = ganymede.catalog(provider=["aws", "gcp"], gpu="V100", market="spot")
        self.assertEqual({offer.provider for offer in offers}, {"aws", "gcp"})
        self.assertEqual({offer.market for offer in offers}, {"spot"})
        for offer in offers:
            self.assertAlmostEqual(offer.usd_per_hour, offer.gpus * offer.usd_per_gpu_hour)
        self.assertEqual(offers.document[0]["usd_per_hour_number"], offers.offers[0].usd_per_hour)
        self.assertIn("more rows", offers._repr_html_())

    def test_validation(self):
        validation = ganymede.validate("stylegan2_ada_v100")
        self.assertTrue(validation.promises_kept)
        predicted = [row for row in validation if row.role == "predict"]
        self.assertEqual(len(predicted), validation.document["summary"]["cells"])
        for row in predicted:
            self.assertAlmostEqual(row.error, row.predicted / row.measured - 1)
        self.assertIn("Predicted against published", validation._repr_html_())
        other = {row.what: row for row in ganymede.validate("distributed_gans_2025") if row.quantity != "time"}
        self.assertIn("inception score", other["AWS: IS"].because)
        self.assertEqual((other["AWS: IS"].measured, other["AWS: IS"].predicted), (8.2, None))
        cost = other["4 V100 of AWS: cost"]
        self.assertEqual((cost.role, cost.measured), ("shown", None))
        self.assertGreater(cost.simulated, 0)

    def test_a_study_is_never_an_option(self):
        with working_folder() as folder:
            file = os.path.join(folder, "written.json")
            with self.assertRaises(ganymede.GanymedeError):
                ganymede.validate(f"--output={file}")
            self.assertFalse(os.path.exists(file))

    def test_cluster(self):
        with working_folder() as folder:
            path = os.path.join(folder, "cluster.json")
            os.system(f"'{os.environ['GANYMEDE']}' example cluster > '{path}'")
            cluster = ganymede.simulate_cluster(path)
        self.assertEqual(len(cluster.jobs), cluster.document["summary"]["jobs"])
        self.assertEqual(cluster.usd, float(cluster.document["cost"]["total_usd"]))
        self.assertEqual(cluster.jobs[0].end_seconds, cluster.document["jobs"][0]["end_s"])
        self.assertIn("badge", cluster._repr_html_())


class Notebooks(unittest.TestCase):
    def test_without_a_program_a_result_is_text(self):
        run = ganymede.simulate(scenario())
        with mock.patch.dict(os.environ, {"GANYMEDE": "/nowhere"}):
            self.assertIn("4 x V100, ring, seed 1", run._repr_html_())


class Load(unittest.TestCase):
    def test_what_was_written_is_read_again(self):
        run = ganymede.simulate(scenario())
        with working_folder():
            with open("run.json", "w", encoding="utf-8") as out:
                json.dump(run.document, out)
            self.assertEqual(ganymede.load("run.json"), run)

    def test_a_rehearsed_life(self):
        run = ganymede.simulate(scenario())
        decisions = {"same": True, "predicted": [], "measured": []}
        row = {"what": "time", "unit": "s", "predicted": 2.0, "measured": 2.5, "off": -0.2, "share": 1}
        life = {"schema": "ganymede.rehearsal/1", "scenario": "s.json", "hosts": 3, "network": "paced", "scale": 0.5,
                "comparison": [row], "decisions": decisions, "predicted": run.document, "measured": run.document}
        with working_folder():
            with open("life.json", "w", encoding="utf-8") as out:
                json.dump(life, out)
            read = ganymede.load("life.json")
            del life["decisions"]
            with open("part.json", "w", encoding="utf-8") as out:
                json.dump(life, out)
            with self.assertRaisesRegex(ganymede.InputError, "part.json: is no complete ganymede.rehearsal/1"):
                ganymede.load("part.json")
        self.assertEqual(read.measured, run)
        self.assertTrue(read.same_decisions)
        self.assertEqual([(part.what, part.off) for part in read.comparison], [("time", -0.2)])

    def test_a_diff(self):
        with working_folder():
            for name, hours in (("a.json", 1), ("b.json", 2)):
                with open(name, "w", encoding="utf-8") as out:
                    json.dump(ganymede.simulate(scenario(), changes={"/deadline": f"{hours}h"}).document, out)
            done = execute(["diff", "a.json", "b.json", "--format", "json", "-o", "diff.json"], progress=False)
            self.assertEqual(done.code, 0, done)
            read = ganymede.load("diff.json")
        self.assertEqual((read.of, read.before, read.after, read.held), ("results", "a.json", "b.json", True))
        quantities = {row.what: row for row in read.quantities}
        self.assertEqual(quantities["time"].change, 0)
        self.assertEqual(quantities["time"].before, read.document["quantities"][0]["before"]["value"])
        self.assertIn(("/deadline", "1h", "2h"), [(part.pointer, part.before, part.after) for part in read.inputs])
        self.assertEqual(len(read.quantities), len(read.document["quantities"]))

    def test_other_files_are_refused(self):
        with working_folder():
            for text, place in (('{"schema": "x/1"}', "/schema"), ("[1]", "/schema"), ("{", "line 1"),
                                ("[" * 10**5, "not valid JSON"), ('{"schema": "ganymede.plan/1"}', "'request' is missing"),
                                ('{"schema": "ganymede.sweep/1", "runs": 3, "failed": []}', "is no complete")):
                with open("bad.json", "w", encoding="utf-8") as out:
                    out.write(text)
                with self.assertRaisesRegex(ganymede.InputError, f"bad.json.*{place}") as caught:
                    ganymede.load("bad.json")
                self.assertEqual(caught.exception.file, "bad.json")
            with self.assertRaisesRegex(ganymede.InputError, "none.json: cannot be read"):
                ganymede.load("none.json")


if __name__ == "__main__":
    unittest.main()
