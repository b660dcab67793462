"""Run logs in TensorBoard, and what a training has written for TensorBoard as a run log.

    ganymede.tensorboard.write("run.jsonl", "runs/gan")                              # of ganymede train --metrics
    ganymede.tensorboard.read("runs/gan", "run.jsonl", steps=10_000, batch=64)       # for ganymede.watch
"""

from __future__ import annotations

import glob
import json
import math
import os
from typing import Any, Dict, List, Optional

from . import _run_log
from ._errors import InputError
from ._program import PathLike

_SUFFIX = ".ganymede"


def write(log: PathLike, folder: PathLike) -> None:
    """Writes losses, quality, images a second and the seconds of pauses of a run log as scalars into a folder for TensorBoard.

    Called again as the log grows, it replaces what it has written before. Other files of the folder stay.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as error:
        raise ImportError("this needs TensorBoard: pip install 'ganymede[tensorboard]'") from error
    scalars = list(_run_log.scalars(os.fspath(log)))
    before = glob.glob(os.path.join(glob.escape(os.fspath(folder)), f"events.out.tfevents.*{_SUFFIX}"))
    writer = EventFileWriter(os.fspath(folder), filename_suffix=_SUFFIX)
    for tag, value, step, now in scalars:
        writer.add_event(Event(wall_time=now, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])))
    writer.close()
    for file in before:
        os.remove(file)


def read(
    folder: PathLike,
    log: PathLike,
    *,
    steps: int,
    batch: int,
    gpus: int = 1,
    model: Optional[str] = None,
    tag: Optional[str] = None,
) -> None:
    """Writes the run log of a training from its scalars in TensorBoard's folder, for `ganymede.watch`.

    `steps` are those of the whole run, `batch` the images of one over all GPUs. The steps are those of the scalar `tag`,
    by default the one that was written most often. Called again as the training goes on, it writes the log anew.
    """
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError as error:
        raise ImportError("this needs TensorBoard: pip install 'ganymede[tensorboard]'") from error
    if steps < 1 or batch < 1 or gpus < 1:
        raise ValueError(f"steps={steps}, batch={batch}, gpus={gpus}: expected at least one step, image and GPU")
    events = EventAccumulator(os.fspath(folder), size_guidance={"scalars": 0})
    events.Reload()
    found = {name: events.Scalars(name) for name in events.Tags()["scalars"]}
    if not found or (tag is not None and tag not in found):
        expected = f"one of {', '.join(sorted(found))}" if found else "what SummaryWriter.add_scalar writes"
        raise InputError(f"{folder}: found no scalar{f' {tag}' if tag else ''}, expected {expected}", os.fspath(folder))
    of = found[tag if tag is not None else max(found, key=lambda name: len(found[name]))]
    if of[-1].step > steps:
        raise InputError(f"{folder}: found step {of[-1].step}, expected at most the {steps} of the whole run: does another "
                         "tag count steps?", os.fspath(folder))
    at_step: Dict[int, Dict[str, Optional[float]]] = {}
    for name, scalars in found.items():
        for one in scalars:
            at_step.setdefault(one.step, {})[name] = one.value if math.isfinite(one.value) else None
    now = min(float(events.FirstEventTimestamp()), of[0].wall_time)
    lines: List[Dict[str, Any]] = [{"schema": "ganymede.run-log/1", "model": model, "gpus": gpus, "batch": batch,
                                    "steps": steps, "first_step": 0, "unix_s": now}]
    for one in of:
        now = max(now, one.wall_time)
        lines.append({"step": one.step, "unix_s": now, "losses": at_step[one.step]})
    if of[-1].step == steps:
        lines.append({"end": "finished", "step": steps, "unix_s": now})
    part = f"{os.fspath(log)}.part"
    with open(part, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    os.replace(part, log)
