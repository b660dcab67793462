"""What can go wrong, sorted by who can mend it, as the program sorts it by exit codes."""

from __future__ import annotations

import contextlib
import re
from typing import Callable, Iterator, Optional


class GanymedeError(Exception):
    """The base of all errors of this package."""


class ProgramNotFound(GanymedeError):
    """There is no program `ganymede` to run, or it cannot be started."""


class VersionMismatch(GanymedeError):
    """The program that was found has another version than this package."""


class ProgramFailure(GanymedeError):
    """The program failed for a reason other than its input."""


class Infeasible(GanymedeError):
    """The request is valid, but nothing can serve it: for example the model does not fit the GPU's memory."""


class InputError(GanymedeError, ValueError):
    """A file, a value or an option is wrong. The message says where, what was found and what was expected.

    `file` is the file, or `<scenario>` and the like if a dict was given; `pointer` is the JSON pointer of the value in
    it, `line` and `column` are its place if the text is not valid JSON. What does not apply is None.
    """

    def __init__(
        self,
        message: str,
        file: Optional[str] = None,
        pointer: Optional[str] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.pointer = pointer
        self.line = line
        self.column = column


_POINTER = re.compile(r"(?P<file>[^:]+|[^ ]+?): (?P<pointer>/.*?): ", re.DOTALL)
_LINE = re.compile(r"(?P<file>.+?): line (?P<line>\d+)(?:, column (?P<column>\d+))?: ", re.DOTALL)


def input_error(message: str, given: Optional[str] = None) -> InputError:
    """The program's message as an exception that carries the place. `given` is the file that was handed over."""
    place = _LINE.match(message)
    if place:
        column = place["column"]
        return InputError(message, place["file"], None, int(place["line"]), int(column) if column else None)
    place = _POINTER.match(message)
    if place:
        return InputError(message, place["file"], place["pointer"])
    return InputError(message, given if given and message.startswith(given + ":") else None)


@contextlib.contextmanager
def complete(failure: Callable[[str], GanymedeError]) -> Iterator[None]:
    """Reads a document of the program's. What it lacks or holds in another form becomes the exception that `failure`
    makes of a message."""
    try:
        yield
    except GanymedeError:
        raise
    except KeyError as error:
        raise failure(f"{error.args[0]!r} is missing") from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise failure(str(error)) from error
