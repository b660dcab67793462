"""Finds the program `ganymede`, checks its version, and runs it as a process that prints JSON."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.metadata
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from ._errors import GanymedeError, Infeasible, InputError, ProgramFailure, ProgramNotFound, VersionMismatch, complete
from ._errors import input_error
from ._progress import ProgressOption, reporter
from ._version import __version__

PathLike = Union[str, "os.PathLike[str]"]

T = TypeVar("T")

_EXIT_INVALID = 2
_EXIT_INFEASIBLE = 3
_EXIT_GOAL_MISSED = 4
_CHUNK = 1 << 20  # bytes read at once
_GRACE_S = 3.0  # how long an interrupted program may take to end


class Output(NamedTuple):
    """What the program left: its exit code, the bytes on its standard output, and its messages."""

    code: int
    stdout: bytes
    messages: str


def _checkouts() -> Iterator[Path]:
    """The source trees that this package may come from: where it lies, or where pip has installed it from."""
    yield Path(__file__).resolve().parents[2]
    with contextlib.suppress(Exception):
        text = importlib.metadata.distribution("ganymede").read_text("direct_url.json")
        address = urllib.parse.urlparse(json.loads(text or "{}").get("url", ""))
        if address.scheme == "file":
            yield Path(urllib.request.url2pathname(address.path)).parent


def _candidates() -> Iterator[Path]:
    yield Path(__file__).resolve().parent / "_carried" / "bin" / "ganymede"  # in a wheel that carries the program
    on_path = shutil.which("ganymede")
    if on_path:
        yield Path(on_path)
    for checkout in _checkouts():
        if (checkout / "CMakeLists.txt").is_file():
            yield checkout / "build" / "release" / "bin" / "ganymede"


def _executable(path: Path, named_by: str) -> Path:
    if not path.exists():
        raise ProgramNotFound(f"{named_by}: there is no file {path}")
    if path.is_dir() or not os.access(path, os.X_OK):
        raise ProgramNotFound(f"{named_by}: {path} cannot be executed")
    return path


def find_program(program: Optional[PathLike] = None) -> Path:
    """The path of the program, whose version fits: the argument, else the environment's GANYMEDE, else the program
    that the wheel carries, else the first on PATH, else the one built in the checkout that this package is from.

    Raises ProgramNotFound or VersionMismatch.
    """
    named = os.fsdecode(program) if program is not None else os.environ.get("GANYMEDE")
    if named:
        named_by = "program" if program is not None else "GANYMEDE"
        on_path = shutil.which(named) if os.sep not in named else None
        found = _executable(Path(on_path or named), named_by)
    else:
        usable = (path for path in _candidates() if path.is_file() and os.access(path, os.X_OK))
        first = next(usable, None)
        if first is None:
            raise ProgramNotFound(
                "the program `ganymede` was not found: build it (./quickstart), put its folder on PATH, or name it by "
                "program=... or the environment variable GANYMEDE"
            )
        found = first
    _check_version(str(found), found.stat().st_mtime_ns)
    return found


@functools.lru_cache(maxsize=16)
def _check_version(path: str, changed_ns: int) -> None:
    """Raises unless the program is of this package's version. `changed_ns` makes a rebuilt program be asked again."""
    try:
        asked = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=60, check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramNotFound(f"{path} cannot be started: {error}") from error
    words = asked.stdout.split()
    if asked.returncode != 0 or len(words) != 2 or words[0] != "ganymede":
        said = ((asked.stderr or asked.stdout).strip() or f"exit code {asked.returncode}").splitlines()[0]
        hint = "; docs/python.md says which libraries it needs" if "shared libraries" in said else ""
        raise ProgramNotFound(f"{path} --version does not answer as ganymede does: {said[:300]}{hint}")
    if words[1].split(".")[:2] != __version__.split(".")[:2]:
        raise VersionMismatch(
            f"{path} is ganymede {words[1]}, and this package is of {__version__}: install both of the same version"
        )


def run(
    reader: Callable[[Any], T],
    arguments: Sequence[str],
    program: Optional[PathLike] = None,
    progress: ProgressOption = None,
    given: Optional[str] = None,
    shown: Optional[str] = None,
) -> T:
    """Runs a command with `--format json` and returns what `reader` makes of the document that it printed. A document
    is a result, even if the exit code says that goals are missed, that nothing meets them, or that some runs of a study
    failed.

    Messages and results name the file `given` as `shown`, if that is not None. Raises GanymedeError.
    """
    output = execute([*arguments, "--format", "json"], program, progress)
    if output.stdout and output.code >= 0:
        text = output.stdout.replace(os.fsencode(given), os.fsencode(shown)) if given and shown else output.stdout
        with _no_garbage_collection():
            try:
                document = json.loads(text)
            except (ValueError, RecursionError):  # the program has failed while it wrote
                if output.code in (0, _EXIT_GOAL_MISSED):
                    raise ProgramFailure(f"the program's answer of {len(text)} bytes is no complete JSON") from None
                raise error_of(output, given, shown) from None
            with complete(lambda what: ProgramFailure(f"the program's answer is not of this package's version: {what}")):
                return reader(document)
    raise error_of(output, given, shown)


def error_of(output: Output, given: Optional[str] = None, shown: Optional[str] = None) -> GanymedeError:
    """The exception for a run without a result."""
    message = re.split("^ganymede: ", output.messages, flags=re.MULTILINE)[-1].strip()  # what comes before are remarks
    if given is not None and shown is not None:
        message = message.replace(given, shown).replace(os.path.dirname(given) + os.sep, "")
    message = message or f"the program ended with exit code {output.code} and no message"
    if output.code == _EXIT_INVALID:
        return input_error(message, shown or given)
    if output.code == _EXIT_INFEASIBLE:
        return Infeasible(message)
    if output.code < 0:
        return ProgramFailure(f"the program was ended by {signal.Signals(-output.code).name}: {message}")
    return ProgramFailure(message)


def execute(
    arguments: Sequence[str], program: Optional[PathLike] = None, progress: ProgressOption = None
) -> Output:
    """Runs the program to its end and returns what it left. An exception, such as KeyboardInterrupt, ends it."""
    command = [str(find_program(program)), *arguments]
    with reporter(progress) as report:
        reading, writing = _pipe() if report else (-1, -1)
        if report:
            command += ["--progress-fd", str(writing)]
        try:
            # A session of its own, so that all its processes can be ended together.
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[writing] if report else [],
                start_new_session=True,
            )
        except OSError as error:
            _close(reading, writing)
            raise ProgramNotFound(f"{command[0]} cannot be started: {error}") from error
        except ValueError as error:
            _close(reading, writing)
            raise InputError(f"an argument cannot be handed to the program: {error}") from error
        _close(writing)
        try:
            return _collected(process, reading, report)
        except BaseException:
            _end(process)
            raise
        finally:
            _close(reading)


def _pipe() -> Tuple[int, int]:
    """A pipe whose ends are none of the first three descriptors, which the program has for itself: they are free where
    Python was started without a standard output."""
    import fcntl  # not everywhere, and nothing else needs it

    ends = os.pipe()
    reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    _close(*ends)
    return reading, writing


def _collected(process: "subprocess.Popen[bytes]", progress_fd: int, report: Any) -> Output:
    """Reads everything that the process writes, as it comes, and waits for its end."""
    assert process.stdout is not None and process.stderr is not None
    stdout, stderr = process.stdout.fileno(), process.stderr.fileno()
    read: Dict[int, List[bytes]] = {stdout: [], stderr: []}
    unfinished = b""
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
        for descriptor in (stdout, stderr, progress_fd):
            if descriptor >= 0:
                selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                part = os.read(key.fd, _CHUNK)
                if not part:
                    selector.unregister(key.fd)
                elif key.fd in read:
                    read[key.fd].append(part)
                else:
                    *lines, unfinished = (unfinished + part).split(b"\n")
                    _report(lines, report)
    return Output(process.wait(), b"".join(read[stdout]), b"".join(read[stderr]).decode("utf-8", "replace"))


def _report(lines: Sequence[bytes], report: Any) -> None:
    """Hands on the last of some lines "done count what"."""
    if lines:
        done, count, what = lines[-1].decode("utf-8", "replace").split(" ", 2)
        report(int(done), int(count), what.split("\t")[0])


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends the process and its children: by an interrupt, then by force whatever has not heeded it."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Large documents are read in half the time: none of their million objects can be garbage."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
