"""A real training in MLflow: its losses and FID are sent while it goes on, its checkpoint is registered, and `ganymede serve`
loads it from there by name and version. With mlflow-skinny alone a folder stands in for the server, which nothing serves from.
"""
import contextlib
import json
import subprocess
import time
import unittest
import urllib.request

from support import PROGRAM, need_tool, program

need_tool("mlflow", "mlflow-skinny")
from mlflow_support import MlflowTest, command, send  # noqa: E402

HEAD = {"schema": "ganymede.run-log/1", "model": "dcgan-28", "gpus": 2, "batch": 64, "steps": 30, "first_step": 0, "unix_s": 1000.0}


class Training(MlflowTest):
    def write_log(self, name, *lines, rest=""):
        log = self.folder / name
        log.write_text("".join(json.dumps(line) + "\n" for line in (HEAD | {"unix_s": 1000.0 + len(name)}, *lines)) + rest)
        return log

    def history(self, run, name):
        return [(one.step, one.value) for one in self.client.get_metric_history(run.info.run_id, name)]

    def until(self, experiment, sent):
        """The experiment's run, once it has so many scalars."""
        for _ in range(600):
            for run in self.runs(experiment):
                if run.data.tags.get("ganymede.scalars") == str(sent):
                    return run
            time.sleep(0.1)
        self.fail(f"{sent} scalars have not come")

    def test_losses_and_fid_are_sent_while_it_goes_on(self):
        first = {"step": 10, "unix_s": 1020.0, "losses": {"generator": 1.5, "discriminator": None}}
        quality = {"quality": {"fid": 48.5, "reference": "x 256", "inception_score": 2.5}, "step": 10, "unix_s": 1021.0}
        log = self.write_log("growing.jsonl", first, rest='{"step": 20, "un')
        with subprocess.Popen(**command(log, "--tracking-uri", self.uri, "--experiment", "growing", "--follow", "--every", 0.2)) as sender:
            run = self.until("growing", 3)
            self.assertEqual((run.info.status, run.data.params),
                             ("RUNNING", {"model": "dcgan-28", "gpus": "2", "batch": "64", "steps": "30"}))
            self.assertIsNone(sender.poll())
            self.write_log("growing.jsonl", first, quality, {"step": 30, "unix_s": 1041.0, "losses": {"generator": 1.25}},
                           {"end": "finished", "step": 30, "unix_s": 1042.0})
            printed, _ = sender.communicate(timeout=120)
        self.assertEqual((sender.returncode, printed.split()), (0, [run.info.run_id]))
        for _ in range(2):  # the second time nothing is left to send
            self.assertEqual(self.history(run, "loss/generator"), [(10, 1.5), (30, 1.25)])
            self.assertEqual(self.history(run, "quality/fid"), [(10, 48.5)])
            self.assertEqual(self.history(run, "quality/inception_score"), [(10, 2.5)])
            ended, = self.runs("growing")
            self.assertEqual((ended.info.status, ended.info.end_time), ("FINISHED", 1042000))
            send(log, "--tracking-uri", self.uri, "--experiment", "growing")

    def test_a_training_of_the_program_is_registered_and_served(self):
        log, checkpoints = self.folder / "real.jsonl", self.folder / "real"
        program("train", "--model", "mlp-gan", "--steps", 4, "--batch", 4, "--quality", 128, "--metrics", log, "--checkpoint", checkpoints)
        for _ in range(2):
            send(log, "--tracking-uri", self.uri, "--experiment", "real", "--checkpoint", checkpoints, "--model-name", "real")
        run, = self.runs("real")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertEqual([step for step, _ in self.history(run, "loss/generator")], [line["step"] for line in lines if "losses" in line])
        self.assertEqual(self.history(run, "quality/fid"), [(line["step"], line["quality"]["fid"]) for line in lines if "quality" in line])
        version, = self.client.search_model_versions("name='real'")
        self.assertEqual((version.run_id, version.tags["ganymede.train.step"], version.tags["ganymede.file"]),
                         (run.info.run_id, "4", "step-000000000004.ckpt"))
        self.serve_from_registry(checkpoints)

    def serve_from_registry(self, checkpoints):
        if not self.uri.startswith("http"):
            self.skipTest("there is no server of MLflow, only mlflow-skinny (pip install mlflow)")
        self.client.set_registered_model_alias("real", "best", "1")
        images = []
        for name, version in ((checkpoints, 4), ("models:/real/1", 1), ("models:/real@best", 1)):
            with serving(name, self.uri) as address:
                health = json.load(urllib.request.urlopen(address + "/health", timeout=60))
                self.assertEqual((health["model"], health["version"]), ("mlp-gan", version))
                asked = urllib.request.Request(address + "/generate", b'{"seed": 7}', method="POST")
                images.append(urllib.request.urlopen(asked, timeout=60).read())
        self.assertTrue(images[0].startswith(b"\x89PNG"))
        self.assertEqual(images, [images[0]] * 3)
        for name, code, why in [("models:/real/2", 2, "models:/real/2"), ("models:/other/1", 2, "other"),
                                ("models:/real", 2, "expected models:/NAME/VERSION")]:
            done = subprocess.run([PROGRAM, "serve", "--generator", name, "--listen", "127.0.0.1:0"], capture_output=True, text=True,
                                  check=False, env={"MLFLOW_TRACKING_URI": self.uri}, timeout=60)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(why, done.stderr)

    def test_what_is_wrong_is_named(self):
        log = self.write_log("wrong.jsonl", {"step": 10, "unix_s": 1020.0, "losses": {"generator": 1.5}})
        other = self.folder / "no-log.json"
        other.write_text("{}")
        for arguments, code, why in [
            ((log, "--run", "0"), 2, "is the log of one training"),
            ((other, "--follow"), 2, "is no run log"),
            ((log, "--checkpoint", self.folder), 2, "found no checkpoint"),
            ((log, "--every", "0"), 2, "--every: expected 0.1 to 3600 seconds"),
            ((self.write_log("broken.jsonl", {"losses": {}}), ), 2, "broken.jsonl"),
            ((log, "--tracking-uri", "http://127.0.0.1:9"), 1, "the same call adds the rest later"),
        ]:
            self.assertIn(why, send("--tracking-uri", self.uri, *arguments, code=code, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0"))


@contextlib.contextmanager
def serving(name, uri):
    """The address of a server that has loaded the model."""
    with subprocess.Popen([PROGRAM, "serve", "--generator", name, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                          env={"MLFLOW_TRACKING_URI": uri}) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


if __name__ == "__main__":
    unittest.main()
