"""Runs in MLflow, sent by `python -m ganymede mlflow` and read back by MLflow's client: in a server if all of MLflow is
here, in a folder if there is mlflow-skinny alone.
"""
import contextlib
import hashlib
import json
import pathlib
import unittest
import unittest.mock

from support import need_tool, program, request, scenario, study

need_tool("mlflow", "mlflow-skinny")
from mlflow_support import MlflowTest, send  # noqa: E402
import mlflow  # noqa: E402

import ganymede  # noqa: E402


class Mlflow(MlflowTest):
    def write(self, name, content, *command):
        """A document that the program makes of `content`."""
        (self.folder / "given.json").write_text(json.dumps(content))
        file = self.folder / name
        program(*command, self.folder / "given.json", "--format", "json", "--quiet", "-o", file)
        return file, json.loads(file.read_text())

    def test_a_result_is_a_run_and_twice_is_once(self):
        file, result = self.write("result.json", scenario(), "simulate")
        for _ in range(2):
            send(file, "--tracking-uri", self.uri, "--experiment", "one", "--start", "2026-12-01T09:00:00Z")
        run, = self.runs("one")
        self.assertEqual(run.info.status, "FINISHED")
        self.assertEqual((run.info.start_time, run.info.end_time),
                         (1796115600000, 1796115600000 + round(1000 * result["time"]["total_s"])))
        self.assertEqual({key: run.data.params[key] for key in ("pool.instance", "scheme", "policy", "seed")},
                         {"pool.instance": "p3.8xlarge", "scheme": "ring", "policy": "fixed", "seed": "1"})
        metrics = run.data.metrics
        self.assertEqual(metrics["cost.total_usd"], float(result["cost"]["total_usd"]))
        self.assertEqual(metrics["time.total_s"], result["time"]["total_s"])
        self.assertEqual([metrics["time.interval_s.low"], metrics["time.interval_s.high"]], result["time"]["interval_s"])
        self.assertEqual({key: metrics[f"gpu_seconds.{key}"] for key in result["gpu_seconds"]}, result["gpu_seconds"])
        for name in metrics:
            self.assertEqual(len(self.client.get_metric_history(run.info.run_id, name)), 1, name)
        self.assertEqual(run.data.tags["ganymede.warnings"].splitlines(), result["provenance"]["warnings"])

    def test_the_runs_of_a_sweep_are_found_by_their_parameters(self):
        file, sweep = self.write("sweep.json", study(gpus=[1, 4]), "sweep")
        self.assertEqual(len(send(file, "--experiment", "many", MLFLOW_TRACKING_URI=self.uri).split()), len(sweep["runs"]))
        self.assertEqual(len(self.runs("many")), len(sweep["runs"]))
        experiment = self.client.get_experiment_by_name("many").experiment_id
        query = "params.seed = '2' and params.platform LIKE '%gcp%'"
        cheapest = self.client.search_runs([experiment], query, order_by=["metrics.`cost.total_usd` ASC"])
        expected = sorted(float(run["cost"]["total_usd"]) for run in sweep["runs"]
                          if run["provenance"]["seed"] == 2 and "gcp" in run["run"]["platform"])
        self.assertEqual([run.data.metrics["cost.total_usd"] for run in cheapest], expected)

    def test_a_plan_that_waited_in_a_file(self):
        file, plan = self.write("plan.json", request(), "plan")
        kept = self.folder / "runs.json"
        program("export", "mlflow", file, "-o", kept)
        send(kept, "--tracking-uri", self.uri, "--experiment", "later")
        send(file, "--tracking-uri", self.uri, "--experiment", "later")
        rows = {json.dumps(row) for name in ("best_of_each", "pareto") for row in plan[name]}
        self.assertEqual(len(self.runs("later")), len(rows))
        chosen, = [run for run in self.runs("later") if run.data.tags.get("ganymede.chosen") == "true"]
        self.assertEqual(chosen.data.metrics["usd.median"], float(plan["chosen"]["usd"]["median"]))

    def test_a_checkpoint_is_an_artifact_and_a_version_of_a_model(self):
        checkpoints = self.folder / "checkpoints"
        program("train", "--model", "mlp-gan", "--steps", 2, "--batch", 4, "--checkpoint", checkpoints)
        file, _ = self.write("trained.json", scenario(), "simulate")
        for _ in range(2):
            send(file, "--tracking-uri", self.uri, "--experiment", "model", "--checkpoint", checkpoints, "--model-name", "digits")
        run, = self.runs("model")
        version, = self.client.search_model_versions("name='digits'")
        self.assertEqual((str(version.version), version.run_id), ("1", run.info.run_id))
        artifact, = self.client.list_artifacts(run.info.run_id, "checkpoint")
        self.assertEqual(version.source, f"{run.info.artifact_uri}/checkpoint")
        fetched = pathlib.Path(self.client.download_artifacts(run.info.run_id, artifact.path, str(self.folder)))
        self.assertEqual(fetched.read_bytes(), (checkpoints / fetched.name).read_bytes())
        self.assertEqual(hashlib.sha256(fetched.read_bytes()).hexdigest(), version.tags["ganymede.sha256"])

    def test_whichever_call_breaks_the_next_try_makes_everything_once(self):
        file, _ = self.write("broken.json", study(gpus=[4], seeds=[1]), "sweep")
        calls = ("create_experiment", "create_run", "log_batch", "log_batch", "log_batch", "set_terminated", "create_run")
        for number in range(len(calls)):
            for carried_out in (False, True):
                experiment, left = f"broken-{number}-{carried_out}", [number]
                with contextlib.ExitStack() as patches:
                    for name in set(calls):
                        patches.enter_context(unittest.mock.patch.object(
                            mlflow.MlflowClient, name, breaking(getattr(mlflow.MlflowClient, name), left, carried_out)))
                    with self.assertRaisesRegex(ganymede.ProgramFailure, "[01] of 2 runs are in MLflow"):
                        ganymede.mlflow.log(file, self.uri, experiment=experiment)
                ganymede.mlflow.log(file, self.uri, experiment=experiment)
                runs = self.runs(experiment)
                self.assertEqual([run.info.status for run in runs], ["FINISHED"] * 2, experiment)
                for run in runs:
                    self.assertIn("cost.total_usd", run.data.metrics)
                    self.assertEqual(len(self.client.get_metric_history(run.info.run_id, "cost.total_usd")), 1, experiment)
                    self.assertEqual(run.data.params["scheme"], "ring")

    def test_what_is_wrong_is_named(self):
        file, _ = self.write("good.json", scenario(), "simulate")
        kept = self.folder / "given-runs.json"
        program("export", "mlflow", file, "-o", kept)
        other = self.folder / "other.json"
        other.write_text('{"schema": "ganymede.mlflow-runs/1"}')
        for arguments, code, why in [
            ((self.folder / "missing.json",), 2, "missing.json"),
            ((file, "--start", "now"), 2, "start now: expected a time with its zone"),
            ((file, "--run", "0"), 2, "is no sweep"),
            ((file, "--checkpoint", self.folder / "nothing"), 2, "found no checkpoint"),
            ((kept, "--run", "0"), 2, "holds its runs already"),
            ((other,), 2, "'runs' is missing"),
            ((file, "--tracking-uri", "http://127.0.0.1:9"), 1, "0 of 1 runs are in MLflow"),
        ]:
            self.assertIn(why, send("--tracking-uri", self.uri, *arguments, code=code, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0"))


def breaking(method, left, carried_out):
    """The method, which raises when `left` of all such calls have been made, before or after it has done its work."""
    def call(self, *arguments, **named):
        left[0] -= 1
        if left[0] == -1 and not carried_out:
            raise mlflow.exceptions.MlflowException("broken")
        answer = method(self, *arguments, **named)
        if left[0] == -1:
            raise mlflow.exceptions.MlflowException("broken")
        return answer
    return call


if __name__ == "__main__":
    unittest.main()
