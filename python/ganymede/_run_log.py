"""Reads run logs: what `ganymede train --metrics` and the recorder of PyTorch write while a training goes on."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Iterator, Tuple

from ._errors import InputError

_HEADER = '{"schema":"ganymede.run-log/1"'
Scalar = Tuple[str, float, int, float]  # tag, value, step, Unix time


def lines(log: str) -> Iterator[Dict[str, Any]]:
    """The lines of a run log. The last may be in writing, and what a crash has cut short is left out."""
    begun = False
    with open(log, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            if text.startswith("{") and not text.rstrip().endswith("}") and (begun or _HEADER.startswith(text.replace(" ", "")[:10])):
                continue
            try:
                line = json.loads(text)
                if not isinstance(line, dict) or not (begun or line.get("schema") == "ganymede.run-log/1"):
                    raise ValueError("expected a ganymede.run-log/1")
                begun = True
                yield line
            except ValueError as error:
                if text.endswith("\n"):
                    raise InputError(f"{log}: line {number}: {error}", log, None, number) from error


def scalars(log: str) -> Iterator[Scalar]:
    """Losses, quality, images a second and the seconds of pauses, in the log's order."""
    batch, step, at, paused = 0, 0, 0.0, 0.0
    for line in lines(log):
        now = float(line["unix_s"])
        if "schema" in line:
            batch, step, at, paused = int(line["batch"]), int(line.get("first_step", 0)), now, 0.0
        elif "pause" in line:
            paused += float(line["seconds"])
            yield f"pause/{line['pause']}", float(line["seconds"]), int(line["step"]), now
        elif "quality" in line:
            for name, value in line["quality"].items():
                if isinstance(value, (int, float)):
                    yield f"quality/{name}", float(value), int(line["step"]), now
        elif "end" not in line:
            for name, loss in line.get("losses", {}).items():
                yield f"loss/{name}", math.nan if loss is None else float(loss), int(line["step"]), now
            if line["step"] > step and now - at > paused:
                yield "images_per_second", (line["step"] - step) * batch / (now - at - paused), int(line["step"]), now
            step, at, paused = int(line["step"]), now, 0.0
