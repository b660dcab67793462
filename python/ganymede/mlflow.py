"""Simulated runs in an MLflow server, by MLflow's own client; its smaller package mlflow-skinny is enough.

    ganymede.mlflow.log("result.json", "http://localhost:5000", experiment="clouds")

`python -m ganymede mlflow` does the same from a shell.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import json
import os
import subprocess
import sys
from typing import Any, Iterator, List, Optional, Sequence

from ._errors import GanymedeError, InputError, ProgramFailure, complete
from ._program import PathLike, error_of, execute

_TAG = "ganymede.run"
_NAME, _PARAM, _TAG_VALUE = 250, 500, 5000  # characters, mlflow/utils/validation.py; of a parameter those of servers before 2.8


def log(
    file: PathLike,
    tracking_uri: Optional[str] = None,
    *,
    experiment: str = "ganymede",
    start: Optional[str] = None,
    run: Optional[int] = None,
    all: bool = False,
    checkpoint: Optional[PathLike] = None,
    checkpoint_uri: Optional[str] = None,
    model_name: Optional[str] = None,
    program: Optional[PathLike] = None,
) -> List[str]:
    """Makes a run of each simulated run in a result, a sweep or a plan, or in what `ganymede export mlflow` wrote of one.

    Returns the ids of the runs. What is there already is not made twice, and what an earlier call could not send is
    added. `start` is when the runs start, such as 2026-12-01T09:00:00Z; else when the file was written. `checkpoint` is a
    directory of `ganymede train --checkpoint`, whose newest one becomes a version of the model `model_name`; it is
    uploaded, unless `checkpoint_uri` says where it can be fetched. Raises GanymedeError.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is sent but to the server
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise ImportError("this needs MLflow: pip install 'ganymede[mlflow]'") from error
    name = os.fspath(file)
    document = _exported(name, run, all, checkpoint, program)
    start_ms = _start_ms(name, start)
    finished: List[str] = []
    try:
        with complete(lambda what: InputError(f"{name}: is not what this version's export mlflow writes: {what}", name)):
            runs = list(document["runs"])
            client = MlflowClient(tracking_uri)
            belongs = _experiment(client, experiment)
            for one in runs:
                logged = _log_run(client, belongs, one, start_ms)
                if "checkpoint" in document:
                    _register(client, logged, document["checkpoint"], checkpoint_uri, model_name)
                client.set_terminated(logged.info.run_id, "FINISHED", start_ms + round(1000 * min(one["seconds"], 1e12)))
                finished.append(logged.info.run_id)
    except (MlflowException, OSError) as error:
        raise ProgramFailure(f"{len(finished)} of {len(runs)} runs are in MLflow, and the same call adds the "
                             f"others later: {error}") from error
    return finished


def _exported(file: str, run: Optional[int], all: bool, checkpoint: Optional[PathLike], program: Optional[PathLike]) -> Any:
    """What `ganymede export mlflow` makes of the file, unless the file is that already."""
    document: Any = None
    with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8") as given:  # the program says what is wrong
        document = json.load(given)
    if isinstance(document, dict) and document.get("schema") == "ganymede.mlflow-runs/1":
        if run is not None or all or checkpoint is not None:
            raise InputError(f"{file}: holds its runs already; `ganymede export mlflow` takes --run, --all, --checkpoint", file)
        return document
    options = [f"--run={run}"] * (run is not None) + ["--all"] * all
    if checkpoint is not None:
        options.append(f"--checkpoint={os.fspath(checkpoint)}")
    output = execute(["export", "mlflow", os.path.join(os.curdir, file), *options], program)
    if output.code != 0:
        raise error_of(output, file)
    return json.loads(output.stdout)


def _start_ms(file: str, start: Optional[str]) -> int:
    if start is None:
        return int(os.stat(file).st_mtime) * 1000
    try:
        time = datetime.datetime.fromisoformat(start.replace("Z", "+00:00"))
        if time.tzinfo is None or time.timestamp() < 0:
            raise ValueError
    except ValueError:
        raise InputError(f"start {start}: expected a time with its zone, such as 2026-12-01T09:00:00Z") from None
    return round(1000 * time.timestamp())


def _experiment(client: Any, name: str) -> str:
    found = client.get_experiment_by_name(name)
    return str(client.create_experiment(name) if found is None else found.experiment_id)


def _log_run(client: Any, experiment: str, one: Any, start_ms: int) -> Any:
    """The run, found by its tag or created, with what it lacks. A metric that is sent twice has two values in some stores;
    parameters and tags have one."""
    from mlflow.entities import Metric, Param, RunTag

    found = client.search_runs([experiment], f"tags.`{_TAG}` = '{one['id']}'", max_results=1)
    if found and found[0].info.status == "FINISHED":
        return found[0]
    tags = {_TAG: one["id"], "mlflow.source.name": "ganymede export mlflow",
            "mlflow.note.content": "Simulated by ganymede, not measured."}
    run = found[0] if found else client.create_run(experiment, start_ms, tags, one["name"][:_NAME])
    for params in _batches([Param(key, value[:_PARAM]) for key, value in one["params"].items()], 100):
        client.log_batch(run.info.run_id, params=params)
    new = {key: value for key, value in one["metrics"].items() if key not in run.data.metrics}
    for metrics in _batches([Metric(key, value, start_ms, 0) for key, value in new.items()], 1000):
        client.log_batch(run.info.run_id, metrics=metrics)
    for labels in _batches([RunTag(key, value[:_TAG_VALUE]) for key, value in one["tags"].items()], 100):
        client.log_batch(run.info.run_id, tags=labels)
    return run


def _batches(entries: List[Any], size: int) -> Iterator[List[Any]]:
    return (entries[first:first + size] for first in range(0, len(entries), size))


def _register(client: Any, run: Any, checkpoint: Any, uri: Optional[str], name: Optional[str]) -> None:
    """Makes the checkpoint a version of a model, unless there is one with its checksum."""
    name = name or f"ganymede-{checkpoint['model']}"
    with open(checkpoint["file"], "rb") as file:
        checksum = hashlib.sha256(file.read()).hexdigest()
    if client.search_registered_models(f"name = '{name}'"):
        versions = client.search_model_versions(f"name = '{name}'")
        if any(version.tags.get("ganymede.sha256") == checksum for version in versions):
            return
    else:
        client.create_registered_model(name)
    if uri is None:
        client.log_artifact(run.info.run_id, checkpoint["file"], "checkpoint")
        uri = f"{run.info.artifact_uri}/checkpoint"
    tags = {"ganymede.sha256": checksum, "ganymede.file": os.path.basename(checkpoint["file"]),
            **{key: value[:_TAG_VALUE] for key, value in checkpoint["tags"].items()}}
    with contextlib.suppress(OSError, subprocess.CalledProcessError):  # no git, or no work tree
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        tags["ganymede.git_commit"] = commit.stdout.strip()
    client.create_model_version(name, uri, run.info.run_id, tags,
                                description="A checkpoint of ganymede train; ganymede generate draws from it.")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m ganymede mlflow", description="Simulated runs in an MLflow server.")
    parser.add_argument("file", help="a result, sweep or plan as JSON, or what `ganymede export mlflow` wrote of one")
    parser.add_argument("--tracking-uri", help="the server; default: MLFLOW_TRACKING_URI")
    parser.add_argument("--experiment", default="ganymede", help="created if it is not there (%(default)s)")
    parser.add_argument("--start", help="when the runs start; default: when the file was written")
    parser.add_argument("--run", type=int, help="only this run of a sweep, from 0")
    parser.add_argument("--all", action="store_true", help="every simulated candidate of a plan")
    parser.add_argument("--checkpoint", help="a directory of ganymede train, whose newest checkpoint becomes a model's version")
    parser.add_argument("--checkpoint-uri", help="where that checkpoint can be fetched, instead of uploading it")
    parser.add_argument("--model-name", help="its name in the registry; default: ganymede- and the model")
    options = vars(parser.parse_args(arguments))
    # MLflow's own defaults wait minutes for a server that is down.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # to a server MLflow prints the address of each run
            ids = log(options.pop("file"), options.pop("tracking_uri"), **options)
    except (GanymedeError, ImportError, OSError) as error:
        print(f"ganymede: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    print("\n".join(ids))
    return 0
