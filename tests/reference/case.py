"""One random case: its files, the program's answers, and what differs."""
import functools
import json
import math
import pathlib
import subprocess
from typing import Any

import hypothesis

from draws import Draw
from runs import Json


@functools.cache
def names(program: str, what: str) -> list[str]:
    """Those that `ganymede list` prints and that need no settings."""
    printed = subprocess.run([program, "list", what], capture_output=True, text=True, check=True).stdout
    return [name for name in (line.split()[0] for line in printed.splitlines()) if name not in ("external", "q-learning")]


class Difference(AssertionError):
    def __init__(self, what: str, text: str) -> None:
        super().__init__(text)
        self.what = what


class Case:
    def __init__(self, draw: Draw, program: str, folder: pathlib.Path, known: set[str]) -> None:
        self.draw, self.program, self.folder, self.known = draw, program, folder, known
        self.written: dict[str, str] = {}
        self.commands: list[str] = []

    def write(self, **documents: Any) -> None:
        """Files NAME.json, or, of a text, NAME.csv."""
        for name, document in documents.items():
            file = f"{name}.csv" if isinstance(document, str) else f"{name}.json"
            text = document if isinstance(document, str) else json.dumps(document)
            self.written[file] = text
            (self.folder / file).write_text(text)

    def run(self, *words: str, codes: tuple[int, ...] = (0, 4)) -> tuple[int, str]:
        """The exit code and what was printed; a code that is not expected is a difference."""
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=120)
        self.commands.append(" ".join(words))
        if done.returncode not in codes:
            self.say(f"exit code of {words[0]}", f"{done.returncode}: {done.stderr.strip()[-400:]}", f"one of {codes}")
            hypothesis.reject()
        return done.returncode, done.stdout

    def answer(self, *words: str, codes: tuple[int, ...] = (0, 4)) -> Json:
        code, text = self.run(*words, "--format", "json", codes=codes)
        return json.loads(text) if text else {"exit_code": code}

    def names(self, what: str) -> list[str]:
        return names(self.program, what)

    def say(self, what: str, said: Any, right: Any) -> None:
        if what not in self.known:
            files = "\n".join(f"  {name}: {text}" for name, text in reversed(self.written.items()))
            raise Difference(what, f"{what} is {said}, expected {right}\n  ganymede {self.commands[-1]}\n{files}")

    def same(self, what: str, said: float, right: float, rel: float = 1e-9, tolerance: float = 0) -> None:
        if not math.isclose(said, right, rel_tol=rel, abs_tol=tolerance):
            self.say(what, said, right)

    def true(self, what: str, holds: bool, said: Any, right: Any) -> None:
        if not holds:
            self.say(what, said, right)
