"""What the tests of MLflow share: a server if all of MLflow is here, a folder if there is mlflow-skinny alone."""
import contextlib
import importlib.metadata
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

from support import ROOT

for name in [name for name in os.environ if name.startswith("MLFLOW_")]:
    del os.environ[name]
# Of what MLflow sends to its makers; of its remarks that a folder is no database.
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", MLFLOW_ALLOW_FILE_STORE="true")
import mlflow  # noqa: E402


def command(*arguments, **environment):
    """How subprocess is to run `python -m ganymede mlflow`."""
    path = os.pathsep.join([os.path.join(ROOT, "python"), os.environ.get("PYTHONPATH", "")])
    return {"args": [sys.executable, "-m", "ganymede", "mlflow", *map(str, arguments)], "text": True, "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE, "env": {**os.environ, "PYTHONPATH": path, **environment}}


def send(*arguments, code=0, **environment):
    """Runs `python -m ganymede mlflow` and returns what it printed."""
    done = subprocess.run(**command(*arguments, **environment), check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}: {done.stderr}"
    return done.stdout if code == 0 else done.stderr


class MlflowTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.uri = f"file://{cls.folder}/store"
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version("mlflow")  # mlflow-skinny alone has no server
            cls.start_server()
        cls.client = mlflow.MlflowClient(cls.uri)

    @classmethod
    def start_server(cls):
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

    def runs(self, experiment):
        found = self.client.get_experiment_by_name(experiment)
        return [] if found is None else list(self.client.search_runs([found.experiment_id]))
