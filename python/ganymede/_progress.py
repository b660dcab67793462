"""Progress: a function of the caller's, a bar in a notebook, or a line on a terminal."""

from __future__ import annotations

import contextlib
import html
import importlib
import sys
import time
from typing import Any, Callable, Iterator, Optional, Union

Progress = Callable[[int, int, str], None]
"""Called with how many pieces are done, how many there are, and what they are ("runs")."""

ProgressOption = Union[None, bool, Progress]
"""None: a bar in a notebook or a line on a terminal, if the work takes long; False: nothing; or a function."""

_SILENT_S = 1.0  # shorter work shows nothing
_REDRAW_S = 0.2


class _Line:
    """A line on a terminal, that is erased at the end."""

    def __init__(self) -> None:
        self.columns = 0

    def draw(self, done: int, count: int, what: str, elapsed_s: float) -> None:
        text = f"{done}/{count} {what}  {elapsed_s:.0f} s"
        sys.stderr.write("\r" + text + " " * (self.columns - len(text)))
        sys.stderr.flush()
        self.columns = max(self.columns, len(text))

    def close(self) -> None:
        if self.columns:
            sys.stderr.write("\r" + " " * self.columns + "\r")
            sys.stderr.flush()


class _Bar:
    """A bar in the output of a notebook's cell, that is taken away at the end."""

    def __init__(self, display: Any) -> None:
        self.display = display
        self.handle: Any = None

    def show(self, text: str) -> None:
        data = {"text/html": text, "text/plain": ""}
        if self.handle is None:
            self.handle = self.display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)

    def draw(self, done: int, count: int, what: str, elapsed_s: float) -> None:
        self.show(
            f'<progress value="{done}" max="{max(count, 1)}"></progress> {done}/{count} {html.escape(what)}, '
            f"{elapsed_s:.0f} s"
        )

    def close(self) -> None:
        if self.handle is not None:
            self.show("")


def _drawing() -> Union[_Bar, _Line, None]:
    """What progress can be drawn on here."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return _Bar(importlib.import_module("IPython.display").display)
    return _Line() if sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty() else None


@contextlib.contextmanager
def reporter(option: ProgressOption) -> Iterator[Optional[Progress]]:
    """The function that is to be called with each piece of progress; None if nobody wants to know."""
    if callable(option):
        yield option
        return
    drawing = None if option is False else _drawing()
    if drawing is None:
        yield None
        return
    begin = drawn = time.monotonic()

    def report(done: int, count: int, what: str) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - begin >= _SILENT_S and now - drawn >= _REDRAW_S:
            drawn = now
            drawing.draw(done, count, what, now - begin)

    try:
        yield report
    finally:
        drawing.close()
