"""`ganymede export mlflow` into a real MLflow server, read back through MLflow's own client."""
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from support import need_tool, program, request, scenario, study

need_tool("mlflow")
for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
    del os.environ[name]
import mlflow  # noqa: E402


class Mlflow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        cls.uri = f"http://127.0.0.1:{port}"
        log = (cls.folder / "server.log").open("w")
        cls.addClassCleanup(log.close)
        server = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
             "--backend-store-uri", f"sqlite:///{cls.folder}/runs.db", "--artifacts-destination", f"{cls.folder}/artifacts"],
            stdout=log, stderr=log, cwd=cls.folder, start_new_session=True,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"})

        def end():
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()
        cls.addClassCleanup(end)
        while server.poll() is None:
            try:
                urllib.request.urlopen(cls.uri + "/health", timeout=10).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        if server.poll() is not None:
            raise RuntimeError((cls.folder / "server.log").read_text())
        cls.client = mlflow.MlflowClient(cls.uri)

    def write(self, name, content, *command):
        """A document that the program makes of `content`."""
        (self.folder / "given.json").write_text(json.dumps(content))
        file = self.folder / name
        program(*command, self.folder / "given.json", "--format", "json", "--quiet", "-o", file)
        return file, json.loads(file.read_text())

    def runs(self, experiment):
        found = self.client.get_experiment_by_name(experiment)
        return [] if found is None else list(self.client.search_runs([found.experiment_id]))

    def test_a_result_is_a_run_and_twice_is_once(self):
        file, result = self.write("result.json", scenario(), "simulate")
        for _ in range(2):
            program("export", "mlflow", file, "--tracking-uri", self.uri, "--experiment", "one", "--start",
                    "2026-12-01T09:00:00Z")
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
        program("export", "mlflow", file, "--tracking-uri", self.uri, "--experiment", "many")
        self.assertEqual(len(self.runs("many")), len(sweep["runs"]))
        experiment = self.client.get_experiment_by_name("many").experiment_id
        query = "params.seed = '2' and params.platform LIKE '%gcp%'"
        cheapest = self.client.search_runs([experiment], query, order_by=["metrics.`cost.total_usd` ASC"])
        expected = sorted(float(run["cost"]["total_usd"]) for run in sweep["runs"]
                          if run["provenance"]["seed"] == 2 and "gcp" in run["run"]["platform"])
        self.assertEqual([run.data.metrics["cost.total_usd"] for run in cheapest], expected)

    def test_a_plan_that_waited_in_a_file(self):
        file, plan = self.write("plan.json", request(), "plan")
        kept = self.folder / "later.jsonl"
        program("export", "mlflow", file, "--requests", kept, "--experiment", "later")
        self.assertEqual(self.runs("later"), [])
        program("export", "mlflow", "--replay", kept, "--tracking-uri", self.uri)
        program("export", "mlflow", file, "--tracking-uri", self.uri, "--experiment", "later")
        rows = {json.dumps(row) for name in ("best_of_each", "pareto") for row in plan[name]}
        self.assertEqual(len(self.runs("later")), len(rows))
        chosen, = [run for run in self.runs("later") if run.data.tags.get("ganymede.chosen") == "true"]
        self.assertEqual(chosen.data.metrics["usd.median"], float(plan["chosen"]["usd"]["median"]))

    def test_a_checkpoint_is_an_artifact_and_a_version_of_a_model(self):
        checkpoints = self.folder / "checkpoints"
        program("train", "--model", "mlp-gan", "--steps", 2, "--batch", 4, "--checkpoint", checkpoints)
        file, _ = self.write("trained.json", scenario(), "simulate")
        for _ in range(2):
            program("export", "mlflow", file, "--tracking-uri", self.uri, "--experiment", "model", "--checkpoint",
                    checkpoints, "--model-name", "digits")
        run, = self.runs("model")
        version, = self.client.search_model_versions("name='digits'")
        self.assertEqual((version.version, version.run_id), ("1", run.info.run_id))
        artifact, = self.client.list_artifacts(run.info.run_id, "checkpoint")
        self.assertEqual(version.source, f"{run.info.artifact_uri}/checkpoint")
        fetched = pathlib.Path(self.client.download_artifacts(run.info.run_id, artifact.path, str(self.folder)))
        self.assertEqual(fetched.read_bytes(), (checkpoints / fetched.name).read_bytes())
        self.assertEqual(hashlib.sha256(fetched.read_bytes()).hexdigest(), version.tags["ganymede.sha256"])


if __name__ == "__main__":
    unittest.main()
