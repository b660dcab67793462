"""Simulated runs and real trainings in an MLflow server, by MLflow's own client; its smaller package mlflow-skinny is
enough.

    ganymede.mlflow.log("result.json", "http://localhost:5000", experiment="clouds")
    ganymede.mlflow.log("run.jsonl", "http://localhost:5000", follow=True, checkpoint="run", model_name="digits")

`python -m ganymede mlflow` does the same from a shell.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import glob
import hashlib
import json
import os
import subprocess
import sys
import time
from typing import Any, Iterator, List, Optional, Sequence

from . import _run_log
from ._errors import GanymedeError, InputError, ProgramFailure, complete
from ._program import PathLike, error_of, execute

_TAG, _SENT = "ganymede.run", "ganymede.scalars"
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
    follow: bool = False,
    every: float = 10,
    program: Optional[PathLike] = None,
) -> List[str]:
    """Makes a run of each simulated run in a result, a sweep or a plan, or in what `ganymede export mlflow` wrote of one;
    or one of a real training, of its run log.

    Returns the ids of the runs. What is there already is not made twice, and what an earlier call could not send is
    added. `start` is when the runs start, such as 2026-12-01T09:00:00Z; else when the file was written. `checkpoint` is a
    directory of `ganymede train --checkpoint`, whose newest one becomes a version of the model `model_name`; it is
    uploaded, unless `checkpoint_uri` says where it can be fetched. With `follow` a training that goes on is sent as its
    log grows, looked at `every` so many seconds, until it ends. Raises GanymedeError.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is sent but to the server
    try:
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        raise ImportError("this needs MLflow: pip install 'ganymede[mlflow]'") from error
    name = os.fspath(file)
    if _is_run_log(name):
        if start is not None or run is not None or all:
            raise InputError(f"{name}: is the log of one training, whose times are its own: --start, --run and --all say "
                             "nothing of it", name)
        try:
            return [_log_training(MlflowClient(tracking_uri), experiment, name, follow, every, checkpoint, checkpoint_uri,
                                  model_name)]
        except (MlflowException, OSError) as error:
            raise ProgramFailure(f"not all of {name} is in MLflow, and the same call adds the rest later: {error}") from error
    if follow:
        raise InputError(f"{name}: is no run log, as `ganymede train --metrics` writes it, that could be followed", name)
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


def _is_run_log(file: str) -> bool:
    with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8") as given:
        first = json.loads(given.readline())
        return isinstance(first, dict) and first.get("schema") == "ganymede.run-log/1"
    return False


def _log_training(client: Any, experiment: str, log: str, follow: bool, every: float, checkpoint: Optional[PathLike],
                  uri: Optional[str], name: Optional[str]) -> str:
    """Sends what the log has, until it says that the training has ended. A server that is away for a while, once the run is
    there, is asked again."""
    from mlflow.exceptions import MlflowException

    run: Any = None
    while True:
        with complete(lambda what: InputError(f"{log}: is not what this version's train writes: {what}", log)):
            known = list(_run_log.lines(log))
            end = known[-1] if "end" in known[-1] else None
            try:
                run = run or _training_run(client, _experiment(client, experiment), known[0])
                _send_scalars(client, run, list(_run_log.scalars(log)))
            except (MlflowException, OSError) as error:
                if run is None or end is not None or not follow:
                    raise
                print(f"ganymede: MLflow: {error}; the next try sends the rest", file=sys.stderr)
        if end is not None or not follow:
            break
        time.sleep(every)
    if checkpoint is not None:
        _register(client, run, _newest_checkpoint(os.fspath(checkpoint), known), uri, name)
    if end is not None:
        client.set_terminated(run.info.run_id, "FINISHED" if end["end"] == "finished" else "KILLED",
                              round(1000 * float(end["unix_s"])))
    return str(run.info.run_id)


def _training_run(client: Any, experiment: str, head: Any) -> Any:
    """The run of a training, found by the first line of its log or created."""
    from mlflow.entities import Param

    key = hashlib.sha256(json.dumps(head, sort_keys=True).encode()).hexdigest()
    found = client.search_runs([experiment], f"tags.`{_TAG}` = '{key}'", max_results=1)
    if found:
        return found[0]
    tags = {_TAG: key, "mlflow.source.name": "ganymede train", "mlflow.note.content": "Trained by ganymede."}
    run = client.create_run(experiment, round(1000 * float(head["unix_s"])), tags, str(head.get("model") or "training")[:_NAME])
    params = [Param(name, str(head[name])[:_PARAM]) for name in ("model", "device", "gpus", "batch", "steps") if name in head]
    client.log_batch(run.info.run_id, params=params)
    return run


def _send_scalars(client: Any, run: Any, scalars: List[_run_log.Scalar]) -> None:
    """Sends those beyond the count that the run's tag states."""
    from mlflow.entities import Metric, RunTag

    sent = int(client.get_run(run.info.run_id).data.tags.get(_SENT, "0"))
    new = [Metric(tag, value, round(1000 * now), step) for tag, value, step, now in scalars[sent:]]
    for metrics in _batches(new, 1000):
        sent += len(metrics)
        client.log_batch(run.info.run_id, metrics=metrics, tags=[RunTag(_SENT, str(sent))])


def _newest_checkpoint(folder: str, log: Any) -> Any:
    """The newest checkpoint of the folder, as `export mlflow --checkpoint` describes it, with what the log says."""
    found = sorted(glob.glob(os.path.join(glob.escape(folder), "step-????????????.ckpt")))
    if not found:
        raise InputError(f"--checkpoint: {folder}: found no checkpoint, expected a directory that ganymede train --checkpoint "
                         "wrote", folder)
    tags = {f"ganymede.train.{key}": str(log[0][key]) for key in ("model", "device", "gpus", "batch", "steps") if key in log[0]}
    tags["ganymede.train.step"] = str(int(os.path.basename(found[-1])[5:-5]))
    quality = [line["quality"] for line in log if "quality" in line]
    if quality:
        tags.update({f"ganymede.quality.{key}": str(value) for key, value in quality[-1].items()})
    return {"file": found[-1], "model": log[0].get("model") or "training", "tags": tags}


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
    parser = argparse.ArgumentParser("python -m ganymede mlflow", description="Simulated runs and real trainings in an MLflow server.")
    parser.add_argument("file", help="a result, sweep or plan as JSON, what `ganymede export mlflow` wrote of one, or the "
                        "log of a real training (ganymede train --metrics)")
    parser.add_argument("--tracking-uri", help="the server; default: MLFLOW_TRACKING_URI")
    parser.add_argument("--experiment", default="ganymede", help="created if it is not there (%(default)s)")
    parser.add_argument("--start", help="when the runs start; default: when the file was written")
    parser.add_argument("--run", type=int, help="only this run of a sweep, from 0")
    parser.add_argument("--all", action="store_true", help="every simulated candidate of a plan")
    parser.add_argument("--checkpoint", help="a directory of ganymede train, whose newest checkpoint becomes a model's version")
    parser.add_argument("--checkpoint-uri", help="where that checkpoint can be fetched, instead of uploading it")
    parser.add_argument("--model-name", help="its name in the registry; default: ganymede- and the model")
    parser.add_argument("--follow", action="store_true", help="of a training that goes on: send until it ends")
    parser.add_argument("--every", type=float, default=10, help="with --follow: seconds between two looks (%(default)s)")
    options = vars(parser.parse_args(arguments))
    if not 0.1 <= options["every"] <= 3600:
        parser.error("--every: expected 0.1 to 3600 seconds")
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
