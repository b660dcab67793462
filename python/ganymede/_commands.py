"""The program's commands as functions. Options that a function does not name are given as `option=value`:
`deadline="60h"` is `--deadline 60h`, `max_gpus=8` is `--max-gpus 8`, a list is the same with commas.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

from ._errors import InputError, complete
from ._lists import Catalog, Collectives, Validation
from ._plans import Plan
from ._program import PathLike, run
from ._progress import ProgressOption
from ._results import Cluster, Diff, Rehearsal, Run, Sweep

if TYPE_CHECKING:
    from ._watch import Forecast

Given = Union[PathLike, Mapping[str, Any]]
"""A file, or what stands in one as a dict."""

Changes = Mapping[str, Any]
"""Replacements by JSON pointer, such as {"/platform/nodes": 2}; None removes a value."""

Flag = Union[None, bool, int, float, str, Sequence[Union[int, float, str]]]

class _Input(NamedTuple):
    """How a document is handed to the program: its arguments, the file's name, and how messages name it instead."""

    arguments: List[str]
    file: Optional[str] = None
    shown: Optional[str] = None


@contextlib.contextmanager
def _input(given: Given, kind: str) -> Iterator[_Input]:
    if not isinstance(given, Mapping):
        if not isinstance(given, (str, bytes, os.PathLike)):
            raise InputError(f"<{kind}>: found a {type(given).__name__}, expected the path of a file or a dict", f"<{kind}>")
        name = os.fsdecode(given)
        path = os.path.join(os.curdir, name) if name.startswith("-") else name  # no option of the program's
        yield _Input([path], path, name if path != name else None)
        return
    with tempfile.TemporaryDirectory(prefix="ganymede-") as folder:
        path = str(Path(folder, f"{kind}.json"))
        Path(path).write_text(_json(_from_here(given), kind), encoding="utf-8")
        yield _Input([path], path, f"<{kind}>")


def _from_here(value: Any) -> Any:
    """The value with paths of files, which start at the working directory, made absolute: for the program they would
    start at the temporary file.
    """
    if isinstance(value, Mapping):
        return {key: _from_here(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_from_here(element) for element in value]
    if isinstance(value, os.PathLike):
        return os.path.abspath(value)
    # A name without a suffix and a folder, such as "aws", is no path, even if there is such a file.
    is_path = isinstance(value, str) and (os.sep in value or os.path.splitext(value)[1]) and os.path.isfile(value)
    return os.path.abspath(value) if is_path else value


def _json(value: Any, kind: str) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"<{kind}>: cannot be written as JSON: {error}", f"<{kind}>") from error


def _set(changes: Optional[Changes]) -> List[str]:
    return [
        word for pointer, value in (changes or {}).items() for word in ("--set", f"{pointer}={_json(value, 'changes')}")
    ]


def _flags(flags: Mapping[str, Flag]) -> List[str]:
    arguments: List[str] = []
    for name, value in flags.items():
        flag = "--" + name.strip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
        elif isinstance(value, (str, int, float)):
            arguments += [flag, str(value)]
        else:
            arguments += [flag, ",".join(str(one) for one in value)]
    return arguments


def _of_schema(document: Mapping[str, Any], expected: str, instead: str) -> Mapping[str, Any]:
    if document["schema"] != expected:
        raise InputError(f"the result is a {document['schema']}, expected {expected}; {instead}")
    return document


def simulate(
    scenario: Union[Given, Plan],
    *,
    seed: Optional[int] = None,
    seeds: Optional[int] = None,
    changes: Optional[Changes] = None,
    jobs: Optional[int] = None,
    program: Optional[PathLike] = None,
    progress: ProgressOption = None,
    **flags: Flag,
) -> Run:
    """Simulates one training: a `ganymede.scenario/1`, or what a plan has chosen."""
    flags = {"seed": seed, "seeds": seeds, "jobs": jobs, **flags}
    with _input(_chosen(scenario), "scenario") as read:
        arguments = ["simulate", *read.arguments, *_set(changes), *_flags(flags)]
        return run(_read_run, arguments, program, progress, read.file, read.shown)


def _read_run(document: Mapping[str, Any]) -> Run:
    return Run.from_document(_of_schema(document, "ganymede.result/1", "simulate_cluster() and simulate_service() are for others"))


def _chosen(scenario: Union[Given, Plan]) -> Given:
    if not isinstance(scenario, Plan):
        return scenario
    if scenario.chosen is None or scenario.chosen.scenario is None:
        raise InputError("the plan has chosen nothing: no candidate meets its goals")
    return scenario.chosen.scenario


def simulate_cluster(
    cluster: Given,
    *,
    seed: Optional[int] = None,
    changes: Optional[Changes] = None,
    program: Optional[PathLike] = None,
    progress: ProgressOption = None,
    **flags: Flag,
) -> Cluster:
    """Simulates many jobs on one cluster: a `ganymede.cluster/1`."""
    with _input(cluster, "cluster") as read:
        arguments = ["simulate", *read.arguments, *_set(changes), *_flags({"seed": seed, **flags})]
        return run(_read_cluster, arguments, program, progress, read.file, read.shown)


def _read_cluster(document: Mapping[str, Any]) -> Cluster:
    return Cluster.from_document(_of_schema(document, "ganymede.cluster-result/1", "simulate() is for one training"))


def simulate_service(
    service: Given,
    *,
    seed: Optional[int] = None,
    changes: Optional[Changes] = None,
    program: Optional[PathLike] = None,
    progress: ProgressOption = None,
) -> Mapping[str, Any]:
    """Simulates a generator that answers requests, a `ganymede.service/1`: the members of its
    `ganymede.service-result/1`."""
    with _input(service, "service") as read:
        arguments = ["simulate", *read.arguments, *_set(changes), *_flags({"seed": seed})]
        return run(_read_service, arguments, program, progress, read.file, read.shown)


def _read_service(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return _of_schema(document, "ganymede.service-result/1", "simulate() is for one training")


def sweep(
    study: Given,
    *,
    seed: Optional[int] = None,
    changes: Optional[Changes] = None,
    jobs: Optional[int] = None,
    program: Optional[PathLike] = None,
    progress: ProgressOption = None,
    **flags: Flag,
) -> Sweep:
    """Simulates every combination of a `ganymede.study/1`: platforms, GPU counts, schemes, policies, seeds."""
    with _input(study, "study") as read:
        arguments = ["sweep", *read.arguments, *_set(changes), *_flags({"seed": seed, "jobs": jobs, **flags})]
        return run(Sweep.from_document, arguments, program, progress, read.file, read.shown)


def plan(
    request: Optional[Given] = None,
    *,
    changes: Optional[Changes] = None,
    jobs: Optional[int] = None,
    program: Optional[PathLike] = None,
    progress: ProgressOption = None,
    **flags: Flag,
) -> Plan:
    """Says what to rent for a goal: a `ganymede.request/1`, or options alone, as in
    `plan(model="dcgan-64", images=50_000_000, deadline="60h", budget="500USD")`. If nothing meets the goal, the plan
    has chosen None.
    """
    with contextlib.ExitStack() as stack:
        read = _Input([]) if request is None else stack.enter_context(_input(request, "request"))
        arguments = ["plan", *read.arguments, *_set(changes), *_flags({"jobs": jobs, **flags})]
        return run(Plan.from_document, arguments, program, progress, read.file, read.shown)


def allreduce(
    *,
    catalog: PathLike,
    instance: Union[str, Sequence[str]],
    scheme: Union[str, Sequence[str]],
    bytes: Union[int, str, Sequence[Union[int, str]]],
    nodes: Union[int, Sequence[int]] = 1,
    jobs: Optional[int] = None,
    program: Optional[PathLike] = None,
    progress: ProgressOption = None,
    **flags: Flag,
) -> Collectives:
    """Times all-reduce schemes against each other on one network, one call for each scheme and size."""
    named: Dict[str, Flag] = {"catalog": os.fspath(catalog), "instance": instance, "nodes": nodes, "scheme": scheme}
    arguments = ["allreduce", *_flags({**named, "bytes": bytes, "jobs": jobs, **flags})]
    return run(Collectives.from_document, arguments, program, progress)


def catalog(
    *, program: Optional[PathLike] = None, provider: Union[None, PathLike, Sequence[PathLike]] = None, **flags: Flag
) -> Catalog:
    """Lists what can be rented where, and how old its prices are: `catalog(gpu="A100", market="spot")`."""
    providers = [provider] if isinstance(provider, (str, os.PathLike)) else provider or []
    named = [word for one in providers for word in ("--provider", os.fspath(one))]
    return run(Catalog.from_document, ["catalog", *named, *_flags(flags)], program, False)


def validate(
    *studies: Given,
    jobs: Optional[int] = None,
    program: Optional[PathLike] = None,
    progress: ProgressOption = None,
) -> Validation:
    """Predicts published measurements: these studies, by name or as `ganymede.validation/1`, or all that come with the
    program.
    """
    with contextlib.ExitStack() as stack:
        arguments = ["validate", *_flags({"jobs": jobs})]
        for study in studies:
            arguments += stack.enter_context(_input(study, "study")).arguments
        return run(Validation.from_document, arguments, program, progress)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "ganymede.result/1": Run.from_document,
    "ganymede.sweep/1": Sweep.from_document,
    "ganymede.plan/1": Plan.from_document,
    "ganymede.cluster-result/1": Cluster.from_document,
    "ganymede.validation-result/1": Validation.from_document,
    "ganymede.rehearsal/1": Rehearsal.from_document,
    "ganymede.diff/1": Diff.from_document,
}


def load(path: PathLike) -> Union[Run, Sweep, Plan, Cluster, Validation, Rehearsal, Diff, Forecast]:
    """Reads what a command wrote with `--format json`."""
    from ._watch import Forecast  # which imports this file

    readers = {**_READERS, "ganymede.forecast/1": Forecast.from_document}
    name = os.fsdecode(path)
    try:
        document = json.loads(Path(name).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}", name) from error
    except (ValueError, RecursionError) as error:
        line, column = getattr(error, "lineno", None), getattr(error, "colno", None)
        raise InputError(f"{name}: not valid JSON: {error}", name, None, line, column) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or schema not in readers:
        raise InputError(f"{name}: /schema: found {schema!r}, expected {', '.join(readers)}", name, "/schema")
    with complete(lambda what: InputError(f"{name}: is no complete {schema}: {what}", name)):
        result: Union[Run, Sweep, Plan, Cluster, Validation, Rehearsal, Diff, Forecast] = readers[schema](document)
        return result
